// Cards are dragged to where an event of the workflow leads; elsewhere the reason is shown.

import { store, mayWrite } from './store.js';
import { get } from './net.js';
import { toast } from './dom.js';
import { fire, movesOf } from './say.js';

let now = null; // { id, from, moves: Promise, list }

// A card may be sent on at once (from todo, with nothing to wait for): what names the status leads there, too.
const leads = (list, to) => {
  const there = list.filter((m) => m.ok && m.target === to);
  return there.length ? there : list.filter((m) => m.ok && m.may?.length === 1 && m.may[0] === to);
};

function reasonFor(list, from, to) {
  const named = list.filter((m) => !m.ok && m.may?.includes(to));
  if (named.length) return named.map((m) => m.event + ': ' + m.text).join('\n');
  return 'no event leads from ' + from + ' to ' + to;
}

function paint(columns, list) {
  for (const col of columns) {
    if (col.name === now.from) continue;
    const ways = leads(list, col.name);
    const ok = ways.length > 0;
    col.el.classList.add(ok ? 'takes' : 'takes-not');
    col.note.textContent = ok ? ways.map((m) => m.event).join(' or ') : reasonFor(list, now.from, col.name);
    col.note.hidden = false;
  }
}

function over() {
  now = null;
  document.body.classList.remove('dragging');
  for (const el of document.querySelectorAll('.takes, .takes-not, .under')) el.classList.remove('takes', 'takes-not', 'under');
  for (const el of document.querySelectorAll('.column > .refuse')) el.hidden = true;
}

export const dragging = {
  source(a, id) {
    a.addEventListener('dragstart', async (e) => {
      if (!mayWrite()) { e.preventDefault(); return; }
      e.dataTransfer.setData('text/plain', id);
      e.dataTransfer.effectAllowed = 'move';
      const c = store.cards.get(id);
      const mine = now = { id, from: c.status, list: [] };
      document.body.classList.add('dragging');
      const { allColumns } = await import('./columns.js');
      try {
        mine.list = await movesOf(id);
        if (now === mine) paint(allColumns(), mine.list);
      } catch (err) {
        toast(err.message, 'bad');
      }
    });
    a.addEventListener('dragend', over);
  },

  target(col) {
    col.el.addEventListener('dragover', (e) => {
      if (!now) return;
      e.preventDefault();
      col.el.classList.add('under');
    });
    col.el.addEventListener('dragleave', (e) => { if (!col.el.contains(e.relatedTarget)) col.el.classList.remove('under'); });
    col.el.addEventListener('drop', (e) => {
      if (!now) return;
      e.preventDefault();
      dropped(now.id, col.name);
      over();
    });
  },
};

// dropped is also how the browser test, and the keyboard's menu, move a card.
export async function dropped(id, to) {
  const c = store.cards.get(id);
  if (!c || c.status === to) return;
  let list;
  try { list = await movesOf(id); } catch (err) { toast(err.message, 'bad'); return; }
  const ways = leads(list, to);
  if (!ways.length) { toast(id + ' stays in ' + c.status + ': ' + reasonFor(list, c.status, to), 'bad'); return; }
  await fire(id, ways);
}
