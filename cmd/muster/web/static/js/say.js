// What a person says: a new card, and the events of the workflow, each with the words it asks for.

import { h, $, show, toast } from './dom.js';
import { get, say, event } from './net.js';
import { store } from './store.js';

// Not for a button or a drag: a comment has its own field, a heartbeat is a session's, and a session is not forgotten in passing.
const ELSEWHERE = new Set(['comment', 'heartbeat', 'adopt', 'forget']);

export const movesOf = async (id) => (await get('/v1/cards/' + encodeURIComponent(id) + '/moves')).filter((m) => !ELSEWHERE.has(m.event));

const KINDS = [['needs_input', 'a person must answer'], ['capability', 'it cannot be done as it stands'], ['transient', 'something outside is down'], ['dependency', 'another card must be done first']];

// The events of the default workflow; a board's own ones ask for a reason.
const FORMS = {
  comment: { say: 'Comment', fields: [['text', 'Comment', 'area', true]] },
  complete: { say: 'Complete', fields: [['summary', 'What was done, and how you know that it works', 'area']] },
  request_review: { say: 'Ask for review', fields: [['summary', 'What changed', 'area']] },
  request_changes: { say: 'Send back', fields: [['text', 'What is wrong, where, and how to see it', 'area', true]] },
  block: { say: 'Block', fields: [['kind', 'What it needs', KINDS], ['reason', 'Why', 'area', true]] },
  unblock: { say: 'Unblock', fields: [['why', 'Your answer to what it waits for', 'area']] },
  specify: { say: 'Specify', fields: [['title', 'Title', 'line', true], ['body', 'Body', 'area']] },
  decompose: { say: 'Split', fields: [['children', 'One card a line, TITLE or TITLE@PROFILE', 'area', true]] },
  reassign: { say: 'Reassign', fields: [['assignee', 'Profile', 'profile', true]] },
  start: { say: 'Start now', fields: [] },
  archive: { say: 'Archive', fields: [] },
  cancel: { say: 'Cancel', danger: true, fields: [['why', 'Why', 'area']] },
  stop_run: { say: 'Stop its session', danger: true, fields: [['why', 'Why', 'area']] },
  reclaim: { say: 'Take it back', danger: true, fields: [['why', 'Why', 'area']] },
  reopen: { say: 'Reopen', fields: [['why', 'Why', 'area']] },
  unarchive: { say: 'Unarchive', fields: [] },
};
const form = (name) => FORMS[name] || { say: name.replaceAll('_', ' '), fields: [['why', 'Why', 'area']] };
export const sayOf = (name) => form(name).say;
export const dangerous = (name) => Boolean(form(name).danger);

function input(kind, name, value) {
  const id = 'f-' + name;
  if (Array.isArray(kind)) return h('select', { id, name }, kind.map(([v, t]) => h('option', { value: v }, t)));
  if (kind === 'profile') return h('select', { id, name }, (store.board?.profiles || []).slice().sort().map((p) => h('option', { value: p, selected: p === value }, p)));
  if (kind === 'area') return h('textarea', { id, name, rows: 5, value: value || '' });
  return h('input', { id, name, type: kind === 'number' ? 'number' : 'text', value: value || '', autocomplete: 'off' });
}

// dialog asks, and stays until it is answered, left, or what was asked is done.
export function dialog(title, fields, label, go, { danger = false, note = '' } = {}) {
  return new Promise((done) => {
    const wrong = h('p', { class: 'wrong', role: 'alert', hidden: true });
    const ok = h('button', { class: danger ? 'danger' : 'primary', type: 'submit' }, label);
    const f = h('form', { method: 'dialog' },
      h('h2', { id: 'dialog-title' }, title), note ? h('p', { class: 'note' }, note) : '',
      fields.map(([name, text, kind, must, value]) => h('label', { class: 'field' }, h('span', {}, text, must ? ' *' : ''), input(kind, name, value))),
      wrong, h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'quiet', on: { click: () => d.close() } }, 'Leave it'), ok));
    const d = h('dialog', { 'aria-labelledby': 'dialog-title', on: { close: () => { d.remove(); done(false); } } }, f);
    f.addEventListener('keydown', (e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) f.requestSubmit(); });
    f.addEventListener('submit', async (e) => {
      e.preventDefault();
      const got = Object.fromEntries(new FormData(f));
      const missing = fields.find(([name, , , must]) => must && !String(got[name] || '').trim());
      const fail = (text) => { wrong.textContent = text; wrong.hidden = false; };
      if (missing) { fail(missing[1] + ': say something'); f.elements[missing[0]].focus(); return; }
      ok.disabled = true;
      ok.classList.add('busy');
      try {
        await go(got);
        done(true);
        d.close();
      } catch (err) {
        fail(err.message + (err.hint ? ' (' + err.hint + ')' : ''));
      }
      ok.disabled = false;
      ok.classList.remove('busy');
    });
    document.body.append(d);
    d.showModal();
    f.querySelector('textarea, input, select')?.focus();
  });
}

function payloadOf(name, got) {
  const p = {};
  for (const [k, v] of Object.entries(got)) if (String(v).trim()) p[k] = v;
  if (name === 'decompose') {
    p.children = got.children.split('\n').map((x) => x.trim()).filter(Boolean).map((x) => {
      const at = x.lastIndexOf('@');
      return at > 0 ? { title: x.slice(0, at).trim(), profile: x.slice(at + 1).trim() } : { title: x };
    });
  }
  return p;
}

async function send(id, name, payload) {
  if (name === 'start') return say('start', { card: id });
  return event(id, name, payload);
}

// fire sends an event; with several ways, the person chooses.
export async function fire(id, ways) {
  const c = store.cards.get(id);
  let move = ways[0];
  if (ways.length > 1) {
    const chosen = await new Promise((ok) => {
      let pick = null;
      dialog(id + ': how?', [['event', 'Event', ways.map((m) => [m.event, sayOf(m.event)])]], 'Go on', async (got) => { pick = ways.find((m) => m.event === got.event); }).then(() => ok(pick));
    });
    if (!chosen) return false;
    move = chosen;
  }
  const { fields, danger } = form(move.event);
  if (!fields.length && !danger) {
    try {
      await send(id, move.event, {});
      toast(id + ': ' + sayOf(move.event).toLowerCase());
      return true;
    } catch (err) {
      toast(id + ': ' + err.message + (err.hint ? ' (' + err.hint + ')' : ''), 'bad');
      return false;
    }
  }
  const values = { title: c?.title, assignee: c?.assignee };
  return dialog(sayOf(move.event) + ' ' + id, fields.map((x) => [...x, values[x[0]]].slice(0, 5)).map((x) => [x[0], x[1], x[2], x[3] === true, values[x[0]]]), sayOf(move.event),
    (got) => send(id, move.event, payloadOf(move.event, got)), { danger, note: c ? c.title : '' });
}

export function addCard() {
  const profiles = [['', 'as the board says'], ...(store.board?.profiles || []).slice().sort().map((p) => [p, p])];
  return dialog('New card on ' + store.board.slug, [['title', 'Title', 'line', true], ['body', 'Body', 'area'], ['assignee', 'Profile', profiles],
    ['priority', 'Priority', 'number'], ['after', 'Waits for (card ids)', 'line'], ['labels', 'Labels (k=v)', 'line'], ['how', 'As', [['', 'a card to be worked'], ['triage', 'an idea (triage)']]]], 'File it', async (got) => {
    const args = { board: store.board.slug, title: got.title, body: got.body };
    if (got.assignee) args.assignee = got.assignee;
    if (Number(got.priority)) args.priority = Number(got.priority);
    const after = got.after.split(/[\s,]+/).filter(Boolean);
    if (after.length) args.after = after;
    const labels = got.labels.split(/[\s,]+/).filter(Boolean).map((x) => x.split(/=(.*)/s).slice(0, 2));
    if (labels.length) args.labels = Object.fromEntries(labels.map(([k, v]) => [k, v || '']));
    if (got.how) args.triage = true;
    const x = await say('card.add', args);
    toast('filed as ' + (x.card || x.id || 'a new card'));
  });
}
