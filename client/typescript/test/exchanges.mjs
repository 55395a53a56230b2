// Plays the scripts of client/exchanges, of which client/README.md has the form. The clients in
// Go and Python play the same.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileOf, files, GatewayError, Mediagate, TaskError, verifyWebhook } from '../dist/index.js';

const folder = process.env.MEDIAGATE_CLIENTS ?? new URL('../..', import.meta.url).pathname;
export const read = (name) => JSON.parse(readFileSync(`${folder}/${name}.json`, 'utf8'));
const named = read('exchanges/answers');
const origin = 'https://gateway.example.com';
/** 2000-01-01, at which each play begins. */
const begin = 946_684_800_000;

/** A clock that goes from timer to timer, once nothing else is to be done. */
export class Clock {
  now = begin;
  #timers = new Map();
  #last = 0;

  /** Runs f by this clock. */
  async run(f) {
    const { setTimeout, clearTimeout } = globalThis;
    const { now } = Date;
    globalThis.setTimeout = (call, milliseconds = 0) => {
      this.#timers.set(++this.#last, { at: this.now + milliseconds, call });
      return this.#last;
    };
    globalThis.clearTimeout = (id) => this.#timers.delete(id);
    Date.now = () => this.now;
    try {
      let running = true;
      const end = f().finally(() => { running = false; });
      end.catch(() => undefined); // whoever awaits it below is told
      for (;;) {
        for (let i = 0; i < 20 && running; i++) await new Promise(setImmediate);
        if (!running) return await end;
        const [id, next] = [...this.#timers].reduce((a, b) => (b[1].at < a[1].at ? b : a), [0, { at: Infinity }]);
        if (!id) { // WebCrypto computes elsewhere
          await new Promise((resolve) => setTimeout(resolve, 1));
          continue;
        }
        this.#timers.delete(id);
        this.now = Math.max(this.now, next.at);
        next.call();
      }
    } finally {
      Object.assign(globalThis, { setTimeout, clearTimeout });
      Date.now = now;
    }
  }
}

/** The body of an answer: whole, cut off or silent after so many bytes, or byte for byte. */
function body({ json, text = JSON.stringify(json), cut, stall, pace }, signal) {
  let bytes = new TextEncoder().encode(text).subarray(0, cut ?? stall);
  return new ReadableStream({
    start: (controller) => signal?.addEventListener('abort', () => controller.error(signal.reason)),
    async pull(controller) {
      if (pace) await new Promise((resolve) => setTimeout(resolve, pace * 1000));
      if (signal?.aborted) return;
      if (bytes.length > 0) {
        const size = pace ? 1 : bytes.length;
        controller.enqueue(bytes.subarray(0, size));
        bytes = bytes.subarray(size);
      } else if (cut !== undefined) controller.error(new TypeError('terminated'));
      else if (stall === undefined) controller.close();
      else await new Promise(() => undefined);
    },
  }, { highWaterMark: 0 });
}

/** A fetch that gives the answers one after the other, and keeps what it was asked. */
export function gateway(answers, { forever = false, asks = [] } = {}) {
  answers = [...answers];
  return async (url, init = {}) => {
    const { headers, body: sent } = new Request(url, { ...init, signal: undefined });
    asks.push({ method: init.method ?? 'GET', url, header: headers, body: sent ? await new Response(sent, { headers }).text() : '' });
    init.signal?.throwIfAborted();
    const answer = answers.length === 1 && forever ? answers[0] : answers.shift();
    assert.ok(answer && asks.length <= 1000, 'the script has no answer left');
    if (answer === 'lost') throw new TypeError('fetch failed');
    if (answer === 'silent') return new Promise((_, reject) => init.signal.addEventListener('abort', () => reject(init.signal.reason)));
    const { status = 200, header = {} } = answer;
    return new Response(status === 204 ? null : body(answer, init.signal), { status, headers: header });
  };
}

/** The members of a script that a play knows. One that it does not know is a behaviour that the client lacks. */
const known = new Set(`name call answers each model endpoint key id method path category fields strict size n secret body header
  repeat forever leave asks calls keys lasts progress returns fails`.split(/\s+/));

/** Plays a script: once, or once for each of the answers that it names. */
export async function play(script) {
  assert.deepEqual(Object.keys(script).filter((name) => !known.has(name)), []);
  for (const each of script.each ?? [undefined]) {
    const answers = script.answers.map((name) => (name === 'each' ? each : name)).map((answer) => (
      typeof answer !== 'string' || answer === 'lost' || answer === 'silent' ? answer : named[answer]));
    const asks = [];
    const heard = [];
    const clock = new Clock();
    const gate = new Mediagate({ url: `${origin}/`, key: 'key', strict: script.strict, fetch: gateway(answers, { forever: script.forever, asks }) });
    await clock.run(async () => {
      const leave = new AbortController();
      if (script.leave) setTimeout(() => leave.abort(new Error('left')), script.leave * 1000);
      for (let i = 0; i < (script.repeat ?? 1); i++) {
        const [result, failure] = await call(script, gate, leave.signal, heard).then((value) => [value], (error) => [undefined, error]);
        checkResult(script, result, failure);
      }
    });
    const took = (clock.now - begin) / 1000;
    assert.equal(asks.length, script.calls ?? answers.length, 'calls');
    if (script.lasts !== undefined) assert.ok(Math.abs(took - script.lasts) <= 0.25, `it lasted ${took} s, not ${script.lasts}`);
    if (script.progress) assert.deepEqual(heard, script.progress);
    checkAsks(script, asks);
  }
}

/** What a script can say of an event. */
const event = ({ type, timestamp = null, task, data }) => ({ type, timestamp, data, task: task?.status ?? null });

/** Makes the call, and returns what a script can say of its result. */
async function call(script, gate, signal, heard) {
  const { model = 'm', endpoint = '/v1/videos/generations', key = 'k', id = 'task_1', fields = {} } = script;
  const options = { signal, endpoint: endpoint || undefined, idempotencyKey: key || undefined, onProgress: (task) => heard.push(task.progress) };
  const told = (task) => ({ status: task.status, files: files(task).map((file) => file.url) });
  switch (script.call) {
    case 'submit': return gate.submit(model, fields, options);
    case 'run': return told(await gate.run(model, fields, options));
    case 'wait': return told(await gate.wait(id, options));
    case 'task': return told(await gate.task(id, options));
    case 'cancel': return void await gate.cancel(id, options);
    case 'call': return gate.call(script.method, script.path, { signal, ...(script.fields && { body: JSON.stringify(script.fields) }) });
    case 'quote': return gate.quote(model, fields, options).then(({ cost, currency }) => `${cost} ${currency}`);
    case 'models': return (await gate.models(script.category, options)).map((one) => one.id);
    case 'upload': return (await gate.upload('images', new Blob(['a'.repeat(script.size)]), 'cat.png', options)).url;
    case 'save': return Promise.all(files(named.completed.json.data).map(async (file) => (await gate.download(file, options)).text()));
    case 'file_of': return fileOf(id, script.n);
    case 'verify_webhook': return event(await verifyWebhook(script.secret, script.header, script.body));
    default: return assert.fail(`no client has the call ${script.call}`);
  }
}

function checkResult({ call, returns, fails }, result, failure) {
  if (!fails) {
    if (failure) throw failure;
    const part = returns && typeof returns === 'object' && !Array.isArray(returns) && call !== 'call';
    return assert.deepEqual(part ? Object.fromEntries(Object.keys(returns).map((name) => [name, result[name]])) : result ?? null, returns ?? null);
  }
  assert.ok(failure, `it returned ${JSON.stringify(result)}`);
  const refused = [failure, failure.cause].find((error) => error instanceof GatewayError);
  const { status, type = '', param = '', reason = '', requestId = '', message } = refused ?? {};
  const told = { status, type, param, reason, request_id: requestId, message, task: failure instanceof TaskError ? failure.task.status : undefined };
  for (const [name, value] of Object.entries(fails)) {
    if (name === 'says') assert.ok(failure.message.includes(value), `it says ${failure.message}, not ${value}`);
    else assert.equal(told[name], value, `${name} of ${failure}`);
  }
}

function checkAsks(script, asks) {
  const keys = new Set(asks.flatMap((ask) => ask.header.get('Idempotency-Key') ?? []));
  if (script.keys) assert.equal(keys.size, script.keys);
  else assert.ok(keys.size === 0 || (keys.size === 1 && keys.has('k')), `the idempotency keys are ${[...keys]}`);
  (script.asks ?? []).forEach(({ header = {}, json, text = [], ...rest }, i) => {
    const ask = asks[i];
    const got = { method: ask.method, url: ask.url, path: ask.url.replace(origin, '') };
    for (const [name, value] of Object.entries(rest)) assert.equal(got[name], value);
    for (const [name, value] of Object.entries(header)) assert.equal(ask.header.get(name), value, name);
    if (json) assert.deepEqual(JSON.parse(ask.body), json);
    for (const part of text) assert.ok(ask.body.includes(part), `the body has no ${JSON.stringify(part)}`);
  });
}
