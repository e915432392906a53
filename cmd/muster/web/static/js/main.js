// The page: who is let in, which board is shown, what the keys do.

import { h, $, show, toast } from './dom.js';
import { enter, live, bearer, onOutside } from './net.js';
import { store, take, on, forget, mayWrite } from './store.js';
import { setFilter, walk } from './columns.js';
import { openCard, close, opened, choose } from './card.js';
import { addCard, movesOf, fire, sayOf } from './say.js';
import { view, VIEWS } from './views.js';
import './fleet.js';

let stream = null;
let board = '';
let route = { view: '' };

// #/BOARD, #/BOARD/CARD, #/BOARD/-/VIEW
function read() {
  const [, slug, x, y] = location.hash.split('/').map((p) => { try { return decodeURIComponent(p); } catch { return p; } });
  return { slug: slug || localStorage.getItem('muster.board') || 'default', card: x && x !== '-' ? x : '', view: x === '-' ? y || '' : '' };
}

function go() {
  if (!bearer.get()) return;
  route = read();
  if (route.slug !== board) {
    stream?.abort();
    stream = new AbortController();
    board = route.slug;
    forget();
    localStorage.setItem('muster.board', board);
    show($('columns'), h('p', { class: 'loading' }, 'reading board ' + board + ' …'));
    live(board, take, link, stream.signal);
    close();
    return;
  }
  settle();
}

function settle() {
  if (!store.board) return;
  if (route.card) openCard(route.card);
  else close();
  const other = Boolean(route.view);
  $('columns').hidden = other;
  $('view').hidden = !other;
  if (other) view(route.view);
  for (const a of $('views').querySelectorAll('a')) {
    if (a.dataset.view === route.view) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
}

const here = (rest = '') => '#/' + encodeURIComponent(store.board?.slug || board) + rest;

// --- how things stand between this page, its node and the leader

let heard = 0, was = null, lost = 0, gone = '';

function link(x) {
  if (x.up) {
    heard = Date.now();
    lost = 0;
    gone = '';
    was = { age: x.age, at: Date.now() };
  } else {
    lost ||= Date.now();
    if (x.why) gone = x.why;
  }
  state();
}

function state() {
  const out = $('link'), bar = $('banner');
  let text = '', cls = 'live';
  if (lost && Date.now() - lost > 800) {
    cls = 'down';
    text = (gone || (store.you.node || 'this node') + ' does not answer: it is being restarted, or was stopped') + '. ' + (heard ? 'What you see is as of ' + new Date(heard).toLocaleTimeString() + '.' : '') + ' Trying again …';
  } else if (was && was.age !== undefined && was.age > 12000) {
    cls = 'stale';
    text = store.you.node + ' has heard from no leader for ' + Math.round(was.age / 1000) + ' s: what you see may be older than that, and nothing can be changed from here until then.';
  } else if (store.fleet && !store.fleet.quorum && !lost) {
    cls = 'stale';
    text = 'No leader is reachable from ' + store.you.node + ': nothing starts or moves; what runs goes on.';
  }
  out.className = cls;
  out.textContent = { live: '● live', stale: '● stale', down: '● away' }[cls];
  document.body.classList.toggle('stale', cls !== 'live');
  bar.hidden = !text;
  if (bar.textContent !== text) bar.textContent = text;
}
setInterval(state, 1000);
on('fleet', state);

// --- the way in

function outside(e) {
  stream?.abort();
  board = '';
  const wrong = h('p', { class: 'wrong', role: 'alert' }, e && e.check !== 'none' ? e.message : '');
  const box = h('textarea', { id: 'token', rows: 3, spellcheck: 'false', autocomplete: 'off' });
  const form = h('form', { class: 'login', on: { submit: async (ev) => {
    ev.preventDefault();
    bearer.set(box.value.trim());
    start();
  } } }, h('h2', {}, 'Who are you?'), h('p', {}, 'On this machine, run ', h('code', {}, 'muster web'), ': it opens this page and lets you in.'),
  h('p', {}, 'From elsewhere, paste a token (', h('code', {}, 'muster token create --role member'), '):'), h('label', { class: 'field' }, h('span', {}, 'Token'), box), wrong, h('button', { class: 'primary', type: 'submit' }, 'Enter'));
  document.body.classList.add('outside');
  show($('columns'), form);
}
onOutside((e) => { bearer.drop(); outside(e); });

async function start() {
  try {
    if (!await enter()) { outside(); return; }
  } catch (e) { outside(e); return; }
  document.body.classList.remove('outside');
  go();
}

on('board', () => {
  show($('views'), VIEWS.map(([name, text]) => h('a', { href: here(name ? '/-/' + name : ''), data: { view: name } }, text)));
  $('add').hidden = !mayWrite();
  settle();
});

// --- keys

const KEYS = [['/', 'filter: words, @who, k=v, status:s, !'], ['j k', 'next and previous card'], ['h l', 'column to the left and right'], ['Enter', 'open the card'], ['Esc', 'close it; leave the filter'], ['m', 'move: what may be said of the card'], ['c', 'comment'],
  ['1 2 3 4', 'card, log, timeline, diff'], ['n', 'new card'], ['a', 'what needs you'], ['b f w r d', 'board, flow, workflow, next round, doctor'], ['t', 'light or dark'], ['?', 'this']];

function help() {
  const d = h('dialog', { 'aria-label': 'Keys', on: { close: () => d.remove() } }, h('h2', {}, 'Keys'), h('dl', { class: 'facts keys' }, KEYS.map(([k, t]) => [h('dt', {}, k.split(' ').map((x) => h('kbd', {}, x))), h('dd', {}, t)])), h('p', { class: 'note' }, 'You are ' + store.you.name + ' (' + store.you.role + ') at ' + store.you.node + '.'),
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'quiet', on: { click: () => { bearer.drop(); location.reload(); } } }, 'Sign this page out'), h('button', { type: 'button', class: 'primary', on: { click: () => d.close() } }, 'Close')));
  document.body.append(d);
  d.showModal();
}

async function moveMenu() {
  const id = document.activeElement?.closest?.('a.card')?.dataset.id || opened();
  if (!id || !mayWrite()) return;
  try {
    const ways = (await movesOf(id)).filter((m) => m.ok);
    if (ways.length) await fire(id, ways);
    else toast(id + ': nothing can be said of it now');
  } catch (e) { toast(e.message, 'bad'); }
}

const themes = ['', 'light', 'dark'];
function theme(step) {
  const now = localStorage.getItem('muster.theme') || '';
  const next = step ? themes[(themes.indexOf(now) + 1) % 3] : now;
  localStorage.setItem('muster.theme', next);
  if (next) document.documentElement.dataset.theme = next;
  else delete document.documentElement.dataset.theme;
  $('theme').textContent = { '': '◐', light: '☀', dark: '☾' }[next];
  $('theme').title = { '': 'as the system', light: 'light', dark: 'dark' }[next];
}

const search = $('search');
let typing = 0;
search.addEventListener('input', () => {
  cancelAnimationFrame(typing);
  typing = requestAnimationFrame(() => {
    const n = setFilter(search.value);
    search.title = search.value ? n + ' cards' : '';
  });
});
search.addEventListener('keydown', (e) => {
  if (e.key === 'Escape') { search.value = ''; setFilter(''); search.blur(); e.stopPropagation(); }
  if (e.key === 'Enter' || e.key === 'ArrowDown') { e.preventDefault(); search.blur(); walk(0, 0); }
});

const KEYDO = {
  '/': () => { search.focus(); search.select(); },
  j: () => walk(0, 1), k: () => walk(0, -1), h: () => walk(-1, 0), l: () => walk(1, 0),
  ArrowDown: () => walk(0, 1), ArrowUp: () => walk(0, -1), ArrowLeft: () => walk(-1, 0), ArrowRight: () => walk(1, 0),
  m: moveMenu, n: () => mayWrite() && store.board && addCard(), '?': help, t: () => theme(true),
  c: () => document.querySelector('.composer textarea')?.focus(),
  a: () => $('needs').querySelector('a')?.focus(),
  1: () => choose('card'), 2: () => choose('log'), 3: () => choose('timeline'), 4: () => choose('diff'),
  b: () => { location.hash = here(); }, f: () => { location.hash = here('/-/flow'); }, w: () => { location.hash = here('/-/workflow'); }, r: () => { location.hash = here('/-/round'); }, d: () => { location.hash = here('/-/doctor'); },
  Escape: () => { if (opened()) location.hash = here(); },
};

document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
  const typed = e.target.closest?.('input, textarea, select');
  if (typed && e.key !== 'Escape') return;
  if (e.key.startsWith('Arrow') && !e.target.closest?.('#columns')) return;
  const fn = KEYDO[e.key];
  if (!fn) return;
  e.preventDefault();
  if (typed) e.target.blur();
  else fn();
});

document.addEventListener('click', (e) => {
  for (const m of document.querySelectorAll('details.menu[open]')) if (!m.contains(e.target)) m.open = false;
});

$('add').addEventListener('click', () => store.board && addCard());
$('help').addEventListener('click', help);
$('theme').addEventListener('click', () => theme(true));
$('board-pick').addEventListener('change', (e) => { location.hash = '#/' + encodeURIComponent(e.target.value); });
window.addEventListener('hashchange', () => { if (location.hash.startsWith('#code=')) start(); else go(); });
theme(false);
start();
