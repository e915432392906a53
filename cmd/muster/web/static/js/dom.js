// Elements without markup: text is always a text node, whatever is in it.

const SVG = 'http://www.w3.org/2000/svg';

function fill(el, props, children) {
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k === 'class') el.setAttribute('class', v);
    else if (k === 'on') for (const [name, fn] of Object.entries(v)) el.addEventListener(name, fn);
    else if (k === 'style') for (const [name, val] of Object.entries(v)) el.style.setProperty(name, val);
    else if (k === 'data') Object.assign(el.dataset, v);
    else if (k === 'value') el.value = v;
    else el.setAttribute(k, v === true ? '' : String(v));
  }
  append(el, children);
  return el;
}

function append(el, children) {
  for (const c of children.flat(Infinity)) {
    if (c === undefined || c === null || c === false || c === '') continue;
    el.append(c instanceof Node ? c : document.createTextNode(String(c)));
  }
}

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);
export const $ = (id) => document.getElementById(id);

export function show(el, ...children) {
  el.replaceChildren();
  append(el, children);
  return el;
}

// only what has changed is written: an attribute set anew costs a layout.
export function setText(el, text) { if (el.textContent !== text) el.textContent = text; }

export function toast(text, kind = '') {
  const el = h('div', { class: 'toast ' + kind }, text);
  $('toasts').append(el);
  setTimeout(() => el.remove(), kind === 'bad' ? 9000 : 4000);
}

export function announce(text) { $('said').textContent = text; }

// Ages are drawn again by one timer, for what is on the page.
export function ago(ms) {
  const n = Math.max(0, Math.round(ms / 1000));
  if (n < 60) return n + 's';
  if (n < 3600) return Math.floor(n / 60) + 'm';
  if (n < 86400) return Math.floor(n / 3600) + 'h' + (n < 36000 && n % 3600 >= 60 ? ' ' + Math.floor(n % 3600 / 60) + 'm' : '');
  return Math.floor(n / 86400) + 'd';
}

export function since(at, before = '', after = '') {
  const t = Date.parse(at);
  return h('time', { datetime: at, title: new Date(t).toLocaleString(), data: { t, before, after } }, before + ago(Date.now() - t) + after);
}

setInterval(() => {
  for (const el of document.querySelectorAll('time[data-t]')) {
    setText(el, el.dataset.before + ago(Date.now() - Number(el.dataset.t)) + el.dataset.after);
  }
}, 5000);

export const clock = (at) => new Date(at).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });

// What programs print: without what would steer a terminal.
export const plain = (text) => text
  .replace(/\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[P^_X][^\x1b]*\x1b\\|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]/g, '')
  .replace(/[^\n]*\r(?!\n)/g, '')
  .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, '');
