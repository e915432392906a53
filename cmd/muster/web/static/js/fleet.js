// The fleet at a glance, and what needs a person.

import { h, $, show, since } from './dom.js';
import { store, on } from './store.js';
import { say } from './net.js';
import { dialog } from './say.js';

const GB = (mb) => (mb >= 1024 ? (mb / 1024).toFixed(mb >= 10240 ? 0 : 1) + ' GB' : mb + ' MB');

function machine(n) {
  const slots = Math.min(n.slots, 16);
  const state = n.state === 'online' && n.estop ? 'stopped' : n.state === 'online' && n.draining ? 'draining' : n.state;
  const tip = [n.name + ': ' + state, n.role + (n.leader ? ', leads' : ''), n.running + ' of ' + n.slots + ' slots', 'memory ' + n.memory_pressure + (n.free_mb ? ', ' + GB(n.free_mb) + ' free' : ''), n.load ? 'load ' + n.load.toFixed(1) : '', n.os + '/' + n.arch, n.version].filter(Boolean).join('\n');
  return h('li', { class: 'machine state-' + state + ' memory-' + n.memory_pressure, title: tip },
    h('i', { class: 'dot' }), h('b', {}, n.name), n.leader ? h('span', { class: 'crown', title: 'leads' }, '♛') : '',
    h('span', { class: 'slots', role: 'img', 'aria-label': n.running + ' of ' + n.slots + ' slots busy' }, Array.from({ length: slots }, (_, i) => h('i', { class: i < n.running ? 'busy' : '' }))),
    n.state === 'online' ? (n.memory_pressure === 'normal' || n.memory_pressure === 'unknown' ? (n.free_mb ? h('small', {}, GB(n.free_mb)) : '') : h('small', { class: 'hot' }, 'memory ' + n.memory_pressure)) : '',
    state !== 'online' ? h('small', { class: 'hot' }, state) : '', n.role === 'replica' ? h('small', {}, 'replica') : '');
}

function draw() {
  const f = store.fleet;
  if (!f) return;
  const alarms = f.alarms.map((a) => h('li', { class: 'alarm' }, a));
  const pauses = f.pauses.filter((p) => p.of !== 'estop' || !f.alarms.length).map((p) => h('li', { class: 'pause' }, 'paused: ' + [p.of, p.name].filter(Boolean).join(' ') + ', by ' + p.by + (p.why ? ': ' + p.why : ''), ' ', p.since ? since(p.since) : '',
    store.you.role === 'manager' && (p.of === 'fleet' || p.of === 'board') ? h('button', { class: 'link', type: 'button', on: { click: () => resume(p) } }, 'resume') : ''));
  const notes = f.notes.length ? h('li', {}, h('details', { class: 'menu notes' }, h('summary', {}, f.notes.length + (f.notes.length > 1 ? ' notes' : ' note')), h('div', { class: 'sheet' }, f.notes.map((x) => h('p', {}, x))))) : '';
  show($('fleet'), h('ul', { class: 'machines' }, f.nodes.filter((n) => n.state !== 'left').map(machine)), h('ul', { class: 'alarms' }, alarms, pauses, notes),
    store.you.role === 'manager' && !f.pauses.some((p) => p.of === 'fleet') ? h('button', { class: 'quiet pause-all', type: 'button', on: { click: pause } }, 'Pause') : '');
  const pick = $('board-pick');
  const want = f.boards.map((b) => b.slug).join(' ');
  if (pick.dataset.list !== want) {
    pick.dataset.list = want;
    show(pick, f.boards.map((b) => h('option', { value: b.slug }, b.label && b.label !== b.slug ? b.label : b.slug)));
  }
  if (store.board) pick.value = store.board.slug;
}

const resume = (p) => say('resume', p.of === 'board' ? { board: p.name } : {}).catch((e) => dialog(e.message, [], 'Well', async () => {}));
const pause = () => dialog('Pause', [['of', 'What', [['board', 'board ' + store.board.slug], ['fleet', 'the whole fleet']]], ['why', 'Why', 'line', true]], 'Pause', (got) => say('pause', { why: got.why, ...(got.of === 'board' ? { board: store.board.slug } : {}) }),
  { note: 'Nothing new starts; what runs goes on.' });

function needs() {
  const el = $('needs');
  el.hidden = !store.needs.length;
  const n = store.needs.length;
  document.title = (n ? '(' + n + ') ' : '') + (store.board ? store.board.slug + ' · ' : '') + 'muster';
  if (!n) return;
  show(el, h('h2', {}, n + (n > 1 ? ' need you' : ' needs you')), h('ul', {}, store.needs.slice(0, 50).map((x) => h('li', {}, h('a', { href: '#/' + encodeURIComponent(x.board) + '/' + encodeURIComponent(x.card) },
    h('span', { class: 'id' }, x.card), ' ', h('span', { class: 'title' }, x.title), h('span', { class: 'text' }, x.text), x.since ? since(x.since) : '')))));
}

on('fleet', draw);
on('needs', needs);
on('board', () => { draw(); needs(); });
