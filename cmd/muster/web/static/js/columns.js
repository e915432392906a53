// The board: a column for each status, and in each as many cards as somebody looks at.

import { h, $, show, since, setText, announce } from './dom.js';
import { store, on, matcher } from './store.js';
import { dragging } from './drag.js';

const PAGE = 60;       // cards of a column that are drawn at first, and more when its end is seen
const MANY = 300;      // changes of one frame beyond which columns are drawn anew

let columns = new Map();
let matches = () => true;
let open = null;       // id of the card in the drawer
const folded = new Set(JSON.parse(localStorage.getItem('muster.folded') || '[]'));

const newest = new Set(['done', 'cancelled', 'archived']);
const byWork = (a, b) => b.priority - a.priority || (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : 0) || a.id.length - b.id.length || (a.id < b.id ? -1 : 1);
const byEnd = (a, b) => (a.updated_at > b.updated_at ? -1 : a.updated_at < b.updated_at ? 1 : 0) || b.id.length - a.id.length || (a.id > b.id ? -1 : 1);

const seen = new IntersectionObserver((list) => {
  for (const e of list) if (e.isIntersecting) e.target.column.more();
}, { rootMargin: '600px' });

class Column {
  constructor(x) {
    Object.assign(this, { name: x.name, stored: x.stored, run: x.run, cards: [], shown: PAGE, nodes: new Map(), before: newest.has(x.stored) ? byEnd : byWork });
    this.count = h('span', { class: 'count' }, '0');
    this.end = h('li', { class: 'end', 'aria-hidden': 'true' });
    this.end.column = this;
    this.list = h('ul', { class: 'cards', 'aria-label': x.name }, this.end);
    this.fold = h('button', { class: 'fold quiet', type: 'button', 'aria-label': 'Fold ' + x.name, on: { click: () => this.toggle() } }, '‹');
    this.note = h('p', { class: 'refuse', hidden: true });
    this.el = h('section', { class: 'column stored-' + x.stored, data: { status: x.name }, 'aria-label': x.name },
      h('header', { on: { dblclick: () => this.toggle() } }, h('h2', {}, x.name, this.count), this.fold), this.note, this.list);
    dragging.target(this);
    seen.observe(this.end);
    this.shape();
  }

  toggle() {
    if (folded.has(this.name)) folded.delete(this.name);
    else folded.add(this.name);
    localStorage.setItem('muster.folded', JSON.stringify([...folded]));
    this.shape();
  }

  shape() {
    const f = folded.has(this.name);
    this.el.classList.toggle('folded', f);
    this.el.classList.toggle('empty', !this.cards.length);
    this.fold.textContent = f || !this.cards.length ? '›' : '‹';
    this.fold.setAttribute('aria-label', (f ? 'Unfold ' : 'Fold ') + this.name);
    this.fold.setAttribute('aria-expanded', String(!f));
    setText(this.count, String(this.cards.length));
  }

  place(c) {
    let lo = 0, hi = this.cards.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (this.before(this.cards[mid], c) < 0) lo = mid + 1;
      else hi = mid;
    }
    return lo;
  }

  remove(c) {
    let i = this.place(c);
    if (this.cards[i]?.id !== c.id) i = this.cards.findIndex((x) => x.id === c.id);
    if (i >= 0) this.cards.splice(i, 1);
    const node = this.nodes.get(c.id);
    if (node) {
      node.remove();
      this.nodes.delete(c.id);
    }
    return node;
  }

  insert(c, node) {
    const i = this.place(c);
    this.cards.splice(i, 0, c);
    if (i >= this.shown) return;
    node = drawCard(c, node);
    this.nodes.set(c.id, node);
    this.list.insertBefore(node, this.nextNode(i));
    this.trim();
  }

  nextNode(i) {
    for (let k = i + 1; k < Math.min(this.cards.length, this.shown + 1); k++) {
      const n = this.nodes.get(this.cards[k].id);
      if (n) return n;
    }
    return this.end;
  }

  // trim keeps the window's size, without a redraw of it.
  trim() {
    for (let k = this.cards.length - 1; this.nodes.size > this.shown && k >= 0; k--) {
      const n = this.nodes.get(this.cards[k].id);
      if (n) {
        n.remove();
        this.nodes.delete(this.cards[k].id);
      }
    }
    this.fillUp();
  }

  fillUp() {
    const want = Math.min(this.shown, this.cards.length);
    if (this.nodes.size >= want) return;
    const add = document.createDocumentFragment();
    let after = this.end;
    for (let k = 0; k < want; k++) {
      const c = this.cards[k];
      if (this.nodes.has(c.id)) continue;
      const n = drawCard(c);
      this.nodes.set(c.id, n);
      if (k === this.nodes.size - 1) add.append(n);
      else this.list.insertBefore(n, this.nextNode(k));
    }
    this.list.insertBefore(add, after);
  }

  more() {
    if (this.nodes.size >= this.cards.length) return;
    this.shown += PAGE;
    this.fillUp();
    seen.unobserve(this.end); // told again when it is still to be seen
    seen.observe(this.end);
  }

  // fill draws the column anew.
  fill(cards) {
    this.cards = cards.sort(this.before);
    this.shown = PAGE;
    this.nodes.clear();
    const nodes = this.cards.slice(0, PAGE).map((c) => {
      const n = drawCard(c);
      this.nodes.set(c.id, n);
      return n;
    });
    this.list.replaceChildren(...nodes, this.end);
    this.shape();
  }
}

const badge = (cls, text, title) => h('span', { class: 'badge ' + cls, title }, text);

function drawCard(c, li) {
  li ||= h('li', {});
  const run = c.session;
  const labels = Object.entries(c.labels).slice(0, 4).map(([k, v]) => badge('label', v ? k + '=' + v : k));
  const waits = c.waits_for.length, waited = c.waited_by.length;
  const foot = [];
  if (run) {
    foot.push(h('span', { class: 'run turn-' + (run.turn || 'busy') }, h('i', { class: 'dot' }), run.profile, ' on ', run.node, ' ', since(run.since)));
  } else if (c.run) {
    foot.push(h('span', { class: 'run' }, h('i', { class: 'dot' }), c.run));
  } else if (c.reason && !c.attention) {
    foot.push(h('span', { class: 'why' }, c.reason.text));
  }
  const a = h('a', { class: 'card' + (c.attention ? ' needs' : '') + (c.run ? ' runs' : '') + (c.id === open ? ' open' : ''), href: '#/' + encodeURIComponent(c.board) + '/' + encodeURIComponent(c.id),
    draggable: 'true', data: { id: c.id } },
  h('span', { class: 'head' }, h('span', { class: 'id' }, c.id),
    c.priority ? badge('prio' + (c.priority > 0 ? ' up' : ''), (c.priority > 0 ? '▲' : '▼') + Math.abs(c.priority), 'priority ' + c.priority) : '',
    waits ? badge('links', '⇠' + waits, 'waits for ' + c.waits_for.join(', ')) : '',
    waited ? badge('links', '⇢' + waited, waited + ' wait for it') : '',
    c.failures ? badge('fails', '✕' + c.failures, c.failures + ' failures in a row') : '',
    h('span', { class: 'grow' }), c.assignee && !run ? h('span', { class: 'who' }, c.assignee) : ''),
  h('span', { class: 'title' }, c.title),
  labels.length ? h('span', { class: 'labels' }, labels) : '',
  c.attention ? h('span', { class: 'attention' }, c.attention.text) : '',
  foot.length ? h('span', { class: 'foot' }, foot) : '');
  const had = li.firstElementChild === document.activeElement && li.firstElementChild;
  li.replaceChildren(a);
  if (had) a.focus({ preventScroll: true });
  dragging.source(a, c.id);
  return li;
}

function drawAll() {
  const root = $('columns');
  columns = new Map(store.board.columns.filter((x) => x.stored !== 'archived').map((x) => [x.name, new Column(x)]));
  refill();
  show(root, [...columns.values()].map((c) => c.el));
}

function refill() {
  const lists = new Map([...columns.keys()].map((k) => [k, []]));
  for (const c of store.cards.values()) if (matches(c)) lists.get(c.status)?.push(c);
  for (const [name, col] of columns) col.fill(lists.get(name));
}

function update(was) {
  if (was.size > MANY) return refill();
  const touched = new Set();
  for (const [id, old] of was) {
    const now = store.cards.get(id);
    let node;
    if (old) {
      const from = columns.get(old.status);
      node = from?.remove(old);
      if (from) touched.add(from);
    }
    if (!now || !matches(now)) continue;
    const to = columns.get(now.status);
    if (!to) continue;
    const moved = !old || old.status !== now.status;
    to.insert(now, node);
    touched.add(to);
    const el = to.nodes.get(id)?.firstElementChild;
    if (el && moved) {
      el.classList.add('arrived');
      setTimeout(() => el.classList.remove('arrived'), 1600);
    }
    if (moved && old && was.size < 4) announce(id + ' is ' + now.status);
  }
  for (const col of touched) {
    col.fillUp();
    col.shape();
  }
}

export function setFilter(text) {
  store.filter = text;
  matches = matcher(text);
  if (store.board) refill();
  return [...columns.values()].reduce((n, c) => n + c.cards.length, 0);
}

export function markOpen(id) {
  for (const x of [open, id]) {
    const c = x && store.cards.get(x);
    const el = c && columns.get(c.status)?.nodes.get(x)?.firstElementChild;
    if (el) el.classList.toggle('open', x === id);
  }
  open = id;
}

// Where the keyboard is: cards are walked in reading order.
export function walk(dx, dy) {
  const at = document.activeElement?.closest?.('a.card');
  const cols = [...columns.values()].filter((c) => c.nodes.size && !c.el.classList.contains('folded'));
  if (!cols.length) return;
  if (!at) return focusOn(cols[0], 0);
  const ci = cols.findIndex((c) => c.el.contains(at));
  const ri = cols[ci] ? cols[ci].cards.findIndex((c) => c.id === at.dataset.id) : 0;
  if (dx) focusOn(cols[Math.max(0, Math.min(cols.length - 1, ci + dx))], ri);
  else focusOn(cols[Math.max(0, ci)], ri + dy);
}

function focusOn(col, i) {
  i = Math.max(0, Math.min(i, col.cards.length - 1));
  if (i >= col.nodes.size) col.more();
  const a = col.nodes.get(col.cards[i].id)?.firstElementChild;
  a?.focus();
  a?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

export const columnOf = (status) => columns.get(status);
export const allColumns = () => columns.values();

on('board', (all) => (all ? drawAll() : 0));
on('cards', update);
