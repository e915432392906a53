// What a card waits for, what waits for it, and what is part of it, as a small picture.

import { s } from './dom.js';
import { store } from './store.js';

const W = 148, H = 40, GX = 44, GY = 10, MOST = 6;

function node(id, x, y, me) {
  const c = store.cards.get(id);
  const text = (t, max) => (t.length > max ? t.slice(0, max - 1) + '…' : t);
  const box = s('g', { class: 'node' + (me ? ' me' : '') + (c ? ' stored-' + c.stored : ''), transform: `translate(${x},${y})` },
    s('rect', { width: W, height: H, rx: 6 }),
    s('text', { x: 10, y: 16, class: 'id' }, id + (c ? ' · ' + c.status : ' · not on this board')),
    s('text', { x: 10, y: 31 }, text(c?.title || '', 21)));
  if (me) return box;
  return s('a', { href: '#/' + encodeURIComponent(c?.board || store.board.slug) + '/' + encodeURIComponent(id) }, box);
}

const line = (x1, y1, x2, y2, cls) => s('path', { class: 'edge ' + cls, d: `M${x1},${y1} C${(x1 + x2) / 2},${y1} ${(x1 + x2) / 2},${y2} ${x2},${y2}` });

export function graph(card) {
  const parts = [];
  for (const c of store.cards.values()) if (c.subtask_of === card.id) parts.push(c.id);
  const left = [...new Set([...(card.subtask_of ? [card.subtask_of] : []), ...card.waits_for])];
  const right = [...new Set([...card.waited_by, ...parts])];
  if (!left.length && !right.length) return null;
  const rows = Math.max(Math.min(left.length, MOST + 1), Math.min(right.length, MOST + 1), 1);
  const height = rows * (H + GY) + 12;
  const midY = (height - H) / 2;
  const cols = [left.length ? 0 : null, left.length ? W + GX : 0, (left.length ? W + GX : 0) + W + GX];
  const out = [];
  const side = (ids, x, incoming) => {
    const shown = ids.slice(0, MOST);
    const n = shown.length + (ids.length > MOST ? 1 : 0);
    const top = (height - (n * (H + GY) - GY)) / 2;
    shown.forEach((id, i) => {
      const y = top + i * (H + GY);
      const part = parts.includes(id) || id === card.subtask_of;
      if (incoming) out.push(line(x + W, y + H / 2, cols[1], midY + H / 2, part ? 'part' : ''));
      else out.push(line(cols[1] + W, midY + H / 2, x, y + H / 2, part ? 'part' : ''));
      out.push(node(id, x, y, false));
    });
    if (ids.length > MOST) out.push(s('text', { class: 'more', x: x + 10, y: top + MOST * (H + GY) + 20 }, 'and ' + (ids.length - MOST) + ' more'));
  };
  if (left.length) side(left, 0, true);
  if (right.length) side(right, cols[2], false);
  out.push(node(card.id, cols[1], midY, true));
  const width = (right.length ? cols[2] : cols[1]) + W;
  return s('svg', { class: 'graph', viewBox: `-2 -2 ${width + 4} ${height + 4}`, width: width + 4, height: height + 4, role: 'group', 'aria-label': 'Links of ' + card.id }, out);
}
