// The node, as this page reaches it: one bearer, one API, one stream.

const KEY = 'muster.bearer';

export class Refused extends Error {
  constructor(e, status) {
    super(e.message || 'no answer');
    Object.assign(this, { code: e.code, check: e.check, hint: e.hint, status });
  }
}

export const bearer = {
  get: () => localStorage.getItem(KEY),
  set: (x) => localStorage.setItem(KEY, x),
  drop: () => localStorage.removeItem(KEY),
};

let outside = () => {};
export function onOutside(fn) { outside = fn; }

// The code stands in the fragment, which no server sees, and goes from the address at once.
export async function enter() {
  const m = /^#code=([\w-]+)$/.exec(location.hash);
  if (m) {
    history.replaceState(null, '', '/');
    const r = await fetch('/web/login', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ code: m[1] }) });
    const x = await r.json();
    if (x.error && !bearer.get()) throw new Refused(x.error, r.status);
    if (!x.error) bearer.set(x.data.bearer);
  }
  return Boolean(bearer.get());
}

async function ask(path, init = {}) {
  const r = await fetch(path, { ...init, cache: 'no-store', headers: { ...init.headers, Authorization: 'Bearer ' + bearer.get() } });
  let x;
  try { x = await r.json(); } catch { throw new Refused({ code: 'unavailable', message: 'the node gave no answer' }, r.status); }
  if (x.error) {
    const e = new Refused(x.error, r.status);
    if (r.status === 401 || x.error.check === 'token') outside(e);
    throw e;
  }
  return x;
}

export const get = async (path, signal) => (await ask(path, { signal })).data;

const wait = (ms) => new Promise((ok) => setTimeout(ok, ms));

// A request is made once: its id is minted first, and it is sent again under that id
// while the node or its leader is away.
export async function say(verb, args) {
  const end = Date.now() + 20000;
  let id, sent = false, retry = false;
  for (;;) {
    try {
      id ||= await get('/v1/id');
      sent = true;
      const x = await ask('/v1/do', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ verb, args, id, retry }) });
      return x.data;
    } catch (e) {
      const again = !(e instanceof Refused) || e.code === 'unavailable' || e.code === 'unknown_outcome';
      if (!again || Date.now() > end) throw e;
      retry = sent;
      await wait(400);
    }
  }
}

export const event = (card, name, payload, more) => say('event', { card, event: name, payload, ...more });

// live follows a board for as long as the signal lasts. It comes back by itself, and is
// then told everything again; tell hears of every message, and `link` of how things stand.
export async function live(board, tell, link, signal) {
  let tries = 0;
  while (!signal.aborted) {
    const cut = new AbortController();
    const stop = () => cut.abort();
    signal.addEventListener('abort', stop, { once: true });
    let quiet = setTimeout(stop, 15000);
    try {
      const r = await fetch('/v1/live?board=' + encodeURIComponent(board), { signal: cut.signal, cache: 'no-store',
        headers: { Authorization: 'Bearer ' + bearer.get(), Accept: 'text/event-stream' } });
      if (!r.ok) {
        const e = new Refused((await r.json()).error, r.status);
        if (r.status === 401 || e.check === 'token') { outside(e); return; }
        throw e;
      }
      await messages(r.body, (kind, x) => {
        clearTimeout(quiet);
        quiet = setTimeout(stop, 15000);
        tries = 0;
        link({ up: true, age: x.age_ms });
        tell(kind, x.data, x);
      });
    } catch (e) {
      if (e instanceof Refused && e.code === 'not_found') { link({ up: false, why: e.message, gone: true }); return; }
      if (!signal.aborted) link({ up: false, why: e instanceof Refused ? e.message : '' });
    } finally {
      clearTimeout(quiet);
      signal.removeEventListener('abort', stop);
    }
    if (signal.aborted) return;
    link({ up: false });
    await wait(Math.min(3000, 150 * 2 ** tries++));
  }
}

async function messages(body, tell) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let parts = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    if (!value.includes('\n')) { parts.push(value); continue; }
    let rest = parts.join('') + value;
    parts = [];
    for (let end; (end = rest.indexOf('\n\n')) >= 0; rest = rest.slice(end + 2)) {
      let kind = '', data = '';
      for (const line of rest.slice(0, end).split('\n')) {
        if (line.startsWith('event: ')) kind = line.slice(7);
        else if (line.startsWith('data: ')) data += line.slice(6);
      }
      if (kind && data) tell(kind, JSON.parse(data));
    }
    if (rest) parts = [rest];
  }
}
