// What the page knows. Views subscribe; changes are told once a frame, and only what changed.

export const store = {
  board: null,      // LiveBoard without its list
  you: { role: 'viewer', name: '', node: '' },
  cards: new Map(),
  fleet: null,      // Status
  needs: [],
  filter: '',
};

const hears = { board: [], cards: [], fleet: [], needs: [] };
export const on = (what, fn) => hears[what].push(fn);
const told = (what, ...args) => hears[what].forEach((fn) => fn(...args));

let changed = new Map(); // id -> the card before, or undefined
let frame = 0;

function later() {
  if (!frame) frame = (document.hidden ? (fn) => setTimeout(fn, 50) : requestAnimationFrame)(flush);
}

function flush() {
  frame = 0;
  const was = changed;
  changed = new Map();
  if (was.size) told('cards', was);
}

function put(id, card) {
  if (!changed.has(id)) changed.set(id, store.cards.get(id));
  if (card) store.cards.set(id, card);
  else store.cards.delete(id);
}

export function take(kind, data) {
  switch (kind) {
    case 'board': {
      const { list, ...board } = data;
      store.you = data.you;
      const same = store.board && store.board.slug === board.slug && JSON.stringify(store.board.columns) === JSON.stringify(board.columns);
      store.board = board;
      if (!same) {
        store.cards = new Map(list.map((c) => [c.id, c]));
        changed = new Map();
        told('board', true);
        return;
      }
      // It came back: what is the same is left alone.
      const now = new Set();
      for (const c of list) {
        now.add(c.id);
        const old = store.cards.get(c.id);
        if (!old || old.updated_at !== c.updated_at || JSON.stringify(old) !== JSON.stringify(c)) put(c.id, c);
      }
      for (const id of store.cards.keys()) if (!now.has(id)) put(id, null);
      told('board', false);
      later();
      return;
    }
    case 'cards':
      for (const c of data.list) put(c.id, c);
      for (const id of data.gone || []) put(id, null);
      later();
      return;
    case 'fleet':
      store.fleet = data;
      told('fleet');
      return;
    case 'needs':
      store.needs = data.list;
      told('needs');
  }
}

export function forget() {
  store.board = null;
  store.cards = new Map();
  changed = new Map();
}

export const mayWrite = () => store.you.role === 'manager' || store.you.role === 'member';

// A filter is words that all must be found; `@x` is an assignee or a machine, `k=v` a label,
// `status:x` a status, `!` what needs a person.
export function matcher(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return () => true;
  return (c) => words.every((w) => {
    if (w === '!') return Boolean(c.attention);
    if (w.startsWith('@')) return (c.assignee + ' ' + c.machine + ' ' + (c.session?.node || '')).toLowerCase().includes(w.slice(1));
    if (w.startsWith('status:')) return c.status.startsWith(w.slice(7));
    if (w.includes('=')) return Object.entries(c.labels).some(([k, v]) => (k + '=' + v).toLowerCase().startsWith(w));
    return c.id.toLowerCase() === w || c.title.toLowerCase().includes(w) || c.id.toLowerCase().includes(w)
      || Object.entries(c.labels).some(([k, v]) => (k + ' ' + v).toLowerCase().includes(w));
  });
}
