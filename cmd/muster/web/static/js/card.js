// The drawer: one card whole, kept as it is now.

import { h, $, show, since, clock, toast, plain } from './dom.js';
import { get, say, event } from './net.js';
import { store, on, mayWrite } from './store.js';
import { movesOf, fire, sayOf, dangerous, dialog } from './say.js';
import { graph } from './graph.js';
import { markOpen } from './columns.js';

const FIRST = ['unblock', 'start', 'complete', 'request_changes', 'request_review', 'specify', 'reopen', 'block'];

let id = null;
let tab = 'card';
let detail = null;
let moves = [];
let why = null;
let turn = 0;          // of loads: an answer that comes late is dropped
let follow = null;     // AbortController of the log that is followed
let logRun = '';
let back = null;       // what had the focus before
let words = null;      // the form for a comment: one for as long as the card is open, so that nothing typed is lost

const path = (rest = '') => '/v1/cards/' + encodeURIComponent(id) + rest;

export const opened = () => id;

export function openCard(x) {
  if (x === id) return;
  if (!id) back = document.activeElement;
  close(false);
  id = x;
  tab = 'card';
  logRun = '';
  detail = why = words = null;
  moves = [];
  markOpen(id);
  const d = $('drawer');
  d.hidden = false;
  document.body.classList.add('with-drawer');
  show(d, h('p', { class: 'loading' }, 'reading ' + id + ' …'));
  load();
}

export function close(whole = true) {
  follow?.abort();
  follow = null;
  turn++;
  if (!id || !whole) return;
  id = null;
  markOpen(null);
  $('drawer').hidden = true;
  document.body.classList.remove('with-drawer');
  if (back?.isConnected) back.focus();
}

async function load() {
  const mine = ++turn;
  try {
    const [d, m, w] = await Promise.all([get(path()), movesOf(id), get(path('/why')).catch(() => null)]);
    if (mine !== turn) return;
    const first = !detail;
    [detail, moves, why] = [d, m, w];
    draw(first);
  } catch (e) {
    if (mine !== turn) return;
    show($('drawer'), bar(), h('p', { class: 'wrong' }, e.message), e.hint ? h('p', { class: 'note' }, e.hint) : '');
  }
}

const shut = () => { location.hash = '#/' + encodeURIComponent(store.board.slug); };

function bar() {
  return h('div', { class: 'bar' }, h('span', { class: 'id' }, id), detail ? h('span', { class: 'status stored-' + detail.stored }, detail.status) : '', h('span', { class: 'grow' }),
    h('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', on: { click: shut } }, '✕'));
}

const TABS = [['card', 'Card'], ['log', 'Log'], ['timeline', 'Timeline'], ['diff', 'Diff']];

function tabs() {
  const list = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Parts of the card' });
  for (const [name, text] of TABS) {
    list.append(h('button', { type: 'button', role: 'tab', id: 'tab-' + name, 'aria-selected': String(tab === name), 'aria-controls': 'tab-body', tabindex: tab === name ? '0' : '-1',
      on: { click: () => choose(name) } }, text));
  }
  list.addEventListener('keydown', (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    e.preventDefault();
    const i = (TABS.findIndex(([n]) => n === tab) + step + TABS.length) % TABS.length;
    choose(TABS[i][0]);
    $('tab-' + TABS[i][0]).focus();
  });
  return list;
}

export function choose(name) {
  if (tab === name) return;
  tab = name;
  if (!detail) return;
  follow?.abort();
  draw(true);
}

function draw(whole) {
  const d = $('drawer');
  d.setAttribute('aria-label', 'Card ' + id);
  const had = words?.contains(document.activeElement) && document.activeElement;
  const focus = document.activeElement?.id;
  const top = d.querySelector('#tab-body')?.scrollTop || 0;
  if (!whole && tab !== 'card') { // the log and the rest go on as they are; what stands above them is drawn anew
    d.querySelector('.bar')?.replaceWith(bar());
    d.querySelector('.actions')?.replaceWith(actions());
    if (tab === 'timeline') drawTimeline(d.querySelector('#tab-body'));
    return;
  }
  const body = h('div', { id: 'tab-body', role: 'tabpanel', 'aria-labelledby': 'tab-' + tab, tabindex: '0', class: 'tab-' + tab });
  show(d, bar(), h('h2', {}, detail.title), actions(), tabs(), body);
  ({ card: drawCard, log: drawLog, timeline: drawTimeline, diff: drawDiff })[tab](body);
  if (had) had.focus();
  if (focus?.startsWith('tab-')) $(focus)?.focus();
  if (!whole) body.scrollTop = top;
}

function actions() {
  const el = h('div', { class: 'actions' });
  if (!mayWrite()) {
    el.append(h('span', { class: 'note' }, 'You may look (role ' + store.you.role + ').'));
    return el;
  }
  const can = moves.filter((m) => m.ok);
  can.sort((a, b) => rank(a) - rank(b));
  const first = can.filter((m) => FIRST.includes(m.event)).slice(0, 3);
  const rest = can.filter((m) => !first.includes(m));
  const not = moves.filter((m) => !m.ok && m.check !== 'no_transition' && m.may?.length);
  el.append(...first.map((m, i) => h('button', { type: 'button', class: i ? '' : 'primary', title: m.target ? 'to ' + m.target : '', on: { click: () => fire(id, [m]) } }, sayOf(m.event))));
  const more = h('details', { class: 'menu' }, h('summary', {}, 'More'),
    h('div', { class: 'sheet' },
      rest.map((m) => h('button', { type: 'button', class: dangerous(m.event) ? 'danger' : '', on: { click: () => { more.open = false; fire(id, [m]); } } }, sayOf(m.event), m.target && m.target !== detail.status ? h('span', { class: 'to' }, '→ ' + m.target) : '')),
      h('button', { type: 'button', on: { click: () => { more.open = false; edit(); } } }, 'Edit'),
      detail.run ? h('button', { type: 'button', on: { click: () => { more.open = false; tellSession(); } } }, 'Message to its session') : '',
      not.map((m) => h('p', { class: 'not' }, h('b', {}, sayOf(m.event)), ' ', m.text.replace(/^card \S+: /, '')))));
  el.append(more);
  return el;
}

const rank = (m) => { const i = FIRST.indexOf(m.event); return i < 0 ? 99 : i; };

function edit() {
  const d = detail;
  return dialog('Edit ' + id, [['title', 'Title', 'line', true, d.title], ['body', 'Body', 'area', false, d.body], ['priority', 'Priority', 'number', false, String(d.priority)], ['machine', 'Only on machine', 'line', false, d.machine]], 'Save', (got) => {
    const args = { card: d.id };
    if (got.title !== d.title) args.title = got.title;
    if (got.body.replace(/\r\n/g, '\n') !== d.body) args.body = got.body.replace(/\r\n/g, '\n');
    if (Number(got.priority) !== d.priority) args.priority = Number(got.priority);
    if (got.machine !== d.machine) args.machine = got.machine;
    return say('card.edit', args);
  });
}

const tellSession = () => dialog('To the session of ' + id, [['text', 'Message', 'area', true]], 'Send', (got) => say('send', { to: id, text: got.text }));

function fact(name, ...value) { return [h('dt', {}, name), h('dd', {}, value)]; }

function drawCard(body) {
  const d = detail;
  const c = store.cards.get(id) || d;
  const out = [];
  if (d.attention) out.push(h('div', { class: 'callout needs' }, h('b', {}, 'Needs a person: '), d.attention.text, d.attention.since ? h('small', {}, ' ', since(d.attention.since, 'for ')) : ''));
  if (why && !d.run && why.text) {
    out.push(h('div', { class: 'callout' }, h('b', {}, 'Why it waits: '), why.text, why.position ? h('small', {}, ' · number ' + why.position + ' in the queue') : '', why.since ? h('small', {}, ' · ', since(why.since, 'for ')) : '',
      why.fix ? h('p', { class: 'note' }, why.fix) : '', values(why.values)));
  }
  if (c.session) out.push(h('div', { class: 'callout run' }, h('i', { class: 'dot' }), ' ', h('b', {}, c.session.profile), ' on ', h('b', {}, c.session.node), ' ', since(c.session.since, 'for '), c.session.turn ? ' · ' + c.session.turn : '', c.session.stopping ? ' · is stopping' : '',
    ' ', h('button', { type: 'button', class: 'link', on: { click: () => choose('log') } }, 'log')));
  if (d.last_error) out.push(h('div', { class: 'callout bad' }, h('b', {}, 'Last error: '), d.last_error));
  out.push(h('dl', { class: 'facts' }, fact('Profile', d.assignee || '—'), d.machine ? fact('Machine', d.machine) : '', d.priority ? fact('Priority', d.priority) : '', fact('Filed', d.creator, ' ', since(d.created_at, '', ' ago')),
    d.workspace ? fact('Workspace', d.workspace) : '', d.branch ? fact('Branch', d.branch) : '', d.start_after ? fact('Not before', new Date(d.start_after).toLocaleString()) : '',
    Object.keys(d.labels).length ? fact('Labels', Object.entries(d.labels).map(([k, v]) => h('span', { class: 'badge label' }, v ? k + '=' + v : k))) : ''));
  out.push(h('pre', { class: 'body' + (d.body ? '' : ' none') }, d.body || 'no text'));
  const g = graph(c);
  if (g) out.push(h('h3', {}, 'Links'), h('div', { class: 'scroll' }, g));
  out.push(h('h3', {}, 'Thread'));
  out.push(h('ol', { class: 'thread' }, d.comments.map((m) => h('li', {}, h('div', { class: 'by' }, h('b', {}, m.author), ' ', since(m.at, '', ' ago')), h('pre', {}, m.text)))));
  const told = d.deliveries || [];
  if (told.length) out.push(h('details', { class: 'note' }, h('summary', {}, told.length + (told.length > 1 ? ' texts wait' : ' text waits') + ' for its session'), told.map((x) => h('p', {}, h('b', {}, x.kind + ', ' + x.state + ': '), x.text))));
  if (mayWrite()) out.push(words ||= composer());
  if (d.runs.length) out.push(h('h3', {}, 'Runs'), runs(d.runs));
  show(body, out);
}

function values(v) {
  const list = Object.entries(v || {});
  if (!list.length) return '';
  return h('dl', { class: 'facts small' }, list.map(([k, x]) => fact(k, typeof x === 'object' ? JSON.stringify(x) : String(x))));
}

function composer() {
  const area = h('textarea', { rows: 2, 'aria-label': 'Comment', placeholder: 'Say something on the card …' });
  const go = h('button', { type: 'submit' }, 'Comment');
  const f = h('form', { class: 'composer', on: { submit: async (e) => {
    e.preventDefault();
    const text = area.value.trim();
    if (!text) return;
    go.disabled = true;
    try {
      await event(id, 'comment', { text });
      area.value = '';
    } catch (err) { toast(err.message, 'bad'); }
    go.disabled = false;
  } } }, area, go);
  area.addEventListener('keydown', (e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) f.requestSubmit(); });
  return f;
}

function runs(list) {
  return h('ol', { class: 'runlist' }, [...list].reverse().map((r) => h('li', {},
    h('button', { type: 'button', class: 'link', on: { click: () => { logRun = r.id; tab = ''; choose('log'); } } }, r.id), ' ', h('span', { class: 'outcome ' + (r.outcome || r.state) }, r.outcome || r.state), ' ', r.role, ' · ', r.profile, ' on ', r.node, ' · ', since(r.started_at, '', ' ago'),
    r.exit_code !== null && r.exit_code !== undefined ? ' · exit ' + r.exit_code : '', r.error ? h('div', { class: 'wrong' }, r.error) : '')));
}

// --- log

const KEEP = 400000; // characters of a log that stay on the page

function drawLog(body) {
  follow?.abort();
  const list = [...detail.runs].reverse();
  if (!list.length) { show(body, h('p', { class: 'none' }, 'no run yet')); return; }
  const run = list.find((r) => r.id === logRun) || list[0];
  logRun = run.id;
  const pick = h('select', { 'aria-label': 'Run', on: { change: (e) => { logRun = e.target.value; drawLog(body); } } }, list.map((r) => h('option', { value: r.id, selected: r.id === run.id }, r.id + ' · ' + (r.outcome || r.state) + ' · ' + r.node)));
  const state = h('span', { class: 'note' }, 'reading …');
  const pre = h('pre', { class: 'log', tabindex: '0', role: 'log', 'aria-label': 'Log of run ' + run.id });
  show(body, h('div', { class: 'logbar' }, pick, state), pre);
  follow = new AbortController();
  tail(run.id, pre, state, follow.signal);
}

async function tail(run, pre, state, signal) {
  const text = new TextDecoder('utf-8');
  let from = 0, size = 0, held = '';
  while (!signal.aborted && pre.isConnected) {
    try {
      const x = await get('/v1/runs/' + encodeURIComponent(run) + '/log?wait=true&from=' + from, signal);
      const bytes = Uint8Array.from(atob(x.chunk), (c) => c.charCodeAt(0));
      from = x.next;
      held += text.decode(bytes, { stream: true });
      const cut = x.eof ? held.length : held.lastIndexOf('\n') + 1;
      const piece = plain(held.slice(0, cut));
      held = held.slice(cut);
      if (piece) {
        const end = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 40;
        pre.append(piece);
        size += piece.length;
        while (size > KEEP && pre.firstChild !== pre.lastChild) {
          size -= pre.firstChild.length;
          pre.firstChild.remove();
        }
        if (end) pre.scrollTop = pre.scrollHeight;
      }
      state.textContent = x.eof ? 'the session has ended' : '● live';
      if (x.eof) {
        if (!size) pre.append('(it has written nothing)');
        return;
      }
    } catch (e) {
      if (signal.aborted) return;
      state.textContent = e.message;
      if (e.code === 'not_found' || e.status === 409) return;
      await new Promise((ok) => setTimeout(ok, 1500));
    }
  }
}

// --- timeline and diff

async function drawTimeline(body) {
  if (!body) return;
  const mine = turn;
  try {
    const list = await get('/v1/events?last=300&card=' + encodeURIComponent(id));
    if (mine !== turn || tab !== 'timeline') return;
    show(body, h('ol', { class: 'timeline' }, list.reverse().map((e) => h('li', {},
      h('time', { datetime: e.at, title: new Date(e.at).toLocaleString() }, clock(e.at)), h('span', { class: 'what' }, h('b', {}, e.kind), e.from ? [' ', h('span', { class: 'status' }, e.from), ' → ', h('span', { class: 'status' }, e.to)] : '', ' ', h('span', { class: 'by' }, e.actor, e.run && e.run !== e.actor ? ' · ' + e.run : ''),
        e.payload ? h('pre', {}, said(e.payload)) : '')))));
  } catch (e) { show(body, h('p', { class: 'wrong' }, e.message)); }
}

const said = (p) => Object.entries(p).map(([k, v]) => k + ': ' + (typeof v === 'string' ? v : JSON.stringify(v))).join('\n');

async function drawDiff(body) {
  const mine = turn;
  show(body, h('p', { class: 'loading' }, 'asking the machine that has its workspace …'));
  try {
    const d = await get(path('/diff'));
    if (mine !== turn || tab !== 'diff') return;
    show(body, h('p', { class: 'note' }, d.branch, ' on ', d.machine, ' · ', d.path), d.text ? h('pre', { class: 'diff' }, d.text.split('\n').map((l) => h('span', { class: kindOf(l) }, l + '\n'))) : h('p', { class: 'none' }, 'nothing has changed'),
      d.cut ? h('p', { class: 'note' }, 'There is more: muster diff ' + id) : '');
  } catch (e) { if (mine === turn) show(body, h('p', { class: 'none' }, e.message), e.hint ? h('p', { class: 'note' }, e.hint) : ''); }
}

const kindOf = (l) => (/^(diff|index|---|\+\+\+)/.test(l) ? 'file' : l.startsWith('@@') ? 'hunk' : l.startsWith('+') ? 'plus' : l.startsWith('-') ? 'minus' : '');

on('cards', (was) => { if (id && was.has(id)) load(); });
