// The other views: the workflow, how cards flow, the next round, what the doctor says.

import { h, s, $, show, ago } from './dom.js';
import { get } from './net.js';
import { store } from './store.js';

export const VIEWS = [['', 'Board'], ['flow', 'Flow'], ['workflow', 'Workflow'], ['round', 'Next round'], ['doctor', 'Doctor']];

let turn = 0;

export async function view(name, redraw = false) {
  const mine = ++turn;
  const el = $('view');
  el.className = 'view-' + name;
  if (!redraw) show(el, h('p', { class: 'loading' }, 'asking …'));
  try {
    const nodes = await ({ flow, workflow, round, doctor })[name]();
    if (mine === turn) show(el, nodes);
  } catch (e) {
    if (mine === turn) show(el, h('p', { class: 'wrong' }, e.message), e.hint ? h('p', { class: 'note' }, e.hint) : '');
  }
}

const slug = () => encodeURIComponent(store.board.slug);

// --- workflow: the picture is copied piece by piece, nothing of it is markup of this page

const SHAPES = new Set(['svg', 'g', 'path', 'rect', 'text', 'tspan', 'circle', 'ellipse', 'line', 'polyline', 'polygon', 'title', 'defs', 'marker']);
const TRAITS = new Set(['width', 'height', 'viewBox', 'x', 'y', 'x1', 'y1', 'x2', 'y2', 'cx', 'cy', 'r', 'rx', 'ry', 'd', 'points', 'class', 'text-anchor', 'transform', 'role', 'aria-label',
  'id', 'refX', 'refY', 'markerWidth', 'markerHeight', 'orient', 'marker-end', 'dx', 'dy', 'dominant-baseline']);

const charts = window.trustedTypes ? window.trustedTypes.createPolicy('muster-chart', { createHTML: (x) => x }) : { createHTML: (x) => x };

function copy(from) {
  if (from.nodeType === Node.TEXT_NODE) return from.data.trim() ? document.createTextNode(from.data) : null;
  if (!SHAPES.has(from.nodeName)) return null;
  const props = {};
  for (const a of from.attributes) if (TRAITS.has(a.name) && !/url\((?!#)|script:/i.test(a.value)) props[a.name] = a.value;
  return s(from.nodeName, props, [...from.childNodes].map(copy));
}

async function workflow() {
  const x = await get('/v1/boards/' + slug() + '/chart');
  const doc = new DOMParser().parseFromString(charts.createHTML(x.svg.replace(/<style>[^]*?<\/style>/g, '')), 'image/svg+xml');
  const pic = copy(doc.documentElement);
  pic.classList.add('chart');
  const yaml = await get('/v1/boards/' + slug() + '/workflow');
  return [h('h2', {}, 'Workflow of ' + store.board.slug, h('small', {}, ' version ' + x.version)), h('div', { class: 'scroll' }, pic),
    h('details', {}, h('summary', {}, 'Its source'), h('pre', { class: 'body' }, yaml.yaml || 'the default workflow'))];
}

// --- flow

let hours = 24;

async function flow() {
  const x = await get('/v1/boards/' + slug() + '/flow?hours=' + hours);
  const pick = h('div', { class: 'pickrow', role: 'group', 'aria-label': 'Time shown' }, [[6, '6 h'], [24, '1 day'], [168, '1 week'], [720, '30 days']].map(([n, t]) => h('button', { type: 'button', 'aria-pressed': String(n === hours), on: { click: () => { hours = n; view('flow', true); } } }, t)));
  return [h('h2', {}, 'Flow of ' + store.board.slug), pick, x.cut ? h('p', { class: 'note' }, 'There is too much to read at once: it begins later than asked for.') : '', area(x), stays(x)];
}

const storedOf = (name) => store.board.columns.find((c) => c.name === name)?.stored || 'archived';

function area(x) {
  const W = 960, H = 320, L = 44, B = 24;
  const names = x.statuses.filter((n) => n !== 'archived' && x.counts[n].some((v) => v > 0)).reverse();
  const n = x.times.length;
  const sum = Array(n).fill(0);
  for (const name of names) x.counts[name].forEach((v, i) => { sum[i] += v; });
  const top = Math.max(1, ...sum);
  const px = (i) => L + (W - L - 8) * i / (n - 1);
  const py = (v) => H - B - (H - B - 8) * v / top;
  const base = Array(n).fill(0);
  const shapes = names.map((name, k) => {
    const low = base.slice();
    x.counts[name].forEach((v, i) => { base[i] += v; });
    const d = 'M' + base.map((v, i) => px(i).toFixed(1) + ',' + py(v).toFixed(1)).join('L') + 'L' + low.map((v, i) => px(i).toFixed(1) + ',' + py(v).toFixed(1)).reverse().join('L') + 'Z';
    return s('path', { d, class: 'area tone' + k % 2 + ' stored-' + storedOf(name) }, s('title', {}, name));
  });
  const marks = [0, 0.5, 1].map((f) => [s('line', { class: 'grid', x1: L, x2: W - 8, y1: py(top * f), y2: py(top * f) }), s('text', { class: 'tick', x: L - 6, y: py(top * f) + 4, 'text-anchor': 'end' }, Math.round(top * f))]);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((f) => {
    const t = new Date(x.times[Math.round((n - 1) * f)]);
    return s('text', { class: 'tick', x: px((n - 1) * f), y: H - 6, 'text-anchor': f === 0 ? 'start' : f === 1 ? 'end' : 'middle' }, hours > 48 ? t.toLocaleDateString([], { month: 'short', day: 'numeric' }) : t.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }));
  });
  return h('figure', {}, s('svg', { class: 'plot', viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': 'Cards in each status over time' }, marks, shapes, ticks),
    h('figcaption', {}, [...names].reverse().map((name) => h('span', { class: 'key stored-' + storedOf(name) }, h('i', {}), name + ' ' + x.counts[name][n - 1]))));
}

const span = (sec) => ago(sec * 1000);

function stays(x) {
  if (!x.stays.length) return h('p', { class: 'none' }, 'no card has left a status in this time');
  const most = Math.max(...x.stays.map((y) => y.p90_s), 1);
  return h('div', { class: 'scroll' }, h('table', { class: 'stays' }, h('caption', {}, 'Time in a status, of the cards that left it'), h('thead', {}, h('tr', {}, ['Status', 'Cards', 'Median', '90 of 100 within', 'Longest', ''].map((t) => h('th', { scope: 'col' }, t || h('span', { class: 'hidden' }, 'bar'))))),
    h('tbody', {}, x.stays.map((y) => h('tr', {}, h('th', { scope: 'row' }, y.status), h('td', {}, y.cards), h('td', {}, span(y.median_s)), h('td', {}, span(y.p90_s)), h('td', {}, span(y.max_s)),
      h('td', { class: 'bars' }, h('i', { class: 'stored-' + storedOf(y.status), style: { width: Math.max(1, 100 * y.p90_s / most) + '%' } })))))));
}

// --- the next round, and the doctor

async function round() {
  const x = await get('/v1/dryrun?board=' + slug());
  const link = (id) => h('a', { href: '#/' + slug() + '/' + encodeURIComponent(id) }, id);
  return [h('h2', {}, 'The next round'), x.live ? '' : h('p', { class: 'callout needs' }, 'No leader is reachable: this is worked out from what this node knows.'),
    h('h3', {}, 'Would start'), x.would.length ? h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {}, ['Card', 'On', 'From', 'To', 'Profile', 'As'].map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, x.would.map((r) => h('tr', {}, h('th', { scope: 'row' }, link(r.card)), h('td', {}, r.node), h('td', {}, r.status), h('td', {}, r.target), h('td', {}, r.assignee), h('td', {}, r.role)))))) : h('p', { class: 'none' }, 'nothing'),
    h('h3', {}, 'Would wait'), x.waiting.length ? h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {}, ['Card', 'Check', 'Why'].map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, x.waiting.map((r) => h('tr', {}, h('th', { scope: 'row' }, link(r.card)), h('td', {}, r.check), h('td', {}, r.text, r.wait_s ? ' (' + ago(r.wait_s * 1000) + ')' : '')))))) : h('p', { class: 'none' }, 'nothing'),
    x.more ? h('p', { class: 'note' }, 'and ' + x.more + ' more') : ''];
}

async function doctor() {
  const list = await get('/web/doctor');
  return [h('h2', {}, 'The doctor on ' + store.you.node), list?.length ? h('ul', { class: 'findings' }, list.map((f) => h('li', { class: 'sev-' + f.severity }, h('b', {}, f.severity), ' ', f.text, ' ', h('small', {}, f.code), h('p', { class: 'note' }, f.fix)))) : h('p', { class: 'none' }, 'nothing found')];
}
