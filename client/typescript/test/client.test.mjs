import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { fileOf, files, GatewayError, Mediagate, TaskError, UnknownError, verifyWebhook } from '../dist/index.js';

const ack = { code: 200, data: [{ status: 'submitted', task_id: 'task_1' }] };
const away = { error: { message: 'away', request_id: 'r' } };
const completed = {
  id: 'task_1', status: 'completed', progress: 100,
  result: { videos: [{ url: ['https://s3.example.com/a'], expires_at: 1, mime_type: 'video/mp4' }] },
};
const stream = (...pieces) => new Response(new ReadableStream({
  async pull(controller) {
    const piece = pieces.shift();
    if (piece === undefined) return controller.close();
    if (piece instanceof Error) return controller.error(piece);
    controller.enqueue(new TextEncoder().encode(piece));
  },
}), { headers: { 'Content-Type': 'text/event-stream' } });
const event = (id, task) => `id: ${id}\nevent: task\ndata: ${JSON.stringify(task)}\n\n`;
const says = (status, body, headers = {}) => new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers });

/** A gateway that gives the answers one after the other; without one the connection breaks. */
function gateway(...answers) {
  const calls = [];
  const fetch = async (url, init) => {
    calls.push({ path: url.replace('https://gateway.example.com', ''), key: init.headers?.get('Idempotency-Key'), ...init });
    init.signal?.throwIfAborted();
    const next = answers.shift();
    if (!next) throw new TypeError('fetch failed');
    return next;
  };
  return { calls, client: new Mediagate({ url: 'https://gateway.example.com/', key: 'key', fetch }) };
}

/** Runs f while the clock goes from timer to timer, and returns how long that took. */
async function elapsed(t, f) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.now() });
  const began = Date.now();
  let running = true;
  const end = f();
  const stop = () => { running = false; };
  end.then(stop, stop);
  while (running) {
    for (let i = 0; i < 10; i++) await new Promise(setImmediate);
    if (running) t.mock.timers.tick(500);
  }
  const took = Date.now() - began;
  t.mock.timers.reset();
  await end;
  return took;
}

/** A fetch on which nothing comes, or nothing more than the beginning. */
const silent = (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
const begun = (signal, type = 'application/json') => new Response(
  new ReadableStream({ start: (controller) => signal.addEventListener('abort', () => controller.error(signal.reason)) }),
  { headers: { 'Content-Type': type } },
);

test('a submit whose fate is unknown is asked for again under its key', async () => {
  const { calls, client } = gateway(says(200, { endpoint: '/v1/videos/generations' }), undefined, says(503, away), says(200, ack));
  assert.equal(await client.submit('a/b', { prompt: 'a boat' }), 'task_1');
  assert.deepEqual(calls.map((c) => c.path), ['/v1/model-schema?model=a%2Fb', ...Array(3).fill('/v1/videos/generations')]);
  assert.ok(calls[1].key);
  assert.deepEqual(new Set(calls.slice(1).map((c) => c.key)).size, 1);
  assert.deepEqual(JSON.parse(calls[3].body), { prompt: 'a boat', model: 'a/b' });
  assert.equal(calls[3].headers.get('Authorization'), 'Bearer key');
  assert.equal(calls[3].headers.get('Prefer'), 'respond-async');
});

test('what was refused is not asked for again', async () => {
  for (const [answer, expected] of [
    [says(400, { error: { message: 'seed is wrong', type: 'invalid_request_error', param: 'seed', reason: 'out_of_range', request_id: 'r' } }), { status: 400, param: 'seed', reason: 'out_of_range', requestId: 'r', temporary: false }],
    [says(403, { error: { message: 'no money', type: 'permission_error', param: null, code: 'quota_not_enough' } }), { status: 403, param: undefined, reason: 'quota_not_enough' }],
    [says(404, '<html>', { 'X-Request-Id': 'q' }), { status: 404, param: undefined, requestId: 'q', temporary: false }],
    [says(504, away, { 'X-Should-Retry': 'false' }), { status: 504, message: 'away', temporary: false }],
  ]) {
    const { calls, client } = gateway(answer);
    const error = await client.submit('m', {}, { endpoint: '/v1/videos/generations', idempotencyKey: 'k' }).then(() => assert.fail(), (e) => e);
    assert.ok(error instanceof GatewayError, String(error));
    for (const [name, value] of Object.entries(expected)) assert.equal(error[name], value, name);
    assert.equal(calls.length, 1);
  }
});

test('the pause that the gateway asks for is kept, and a signal ends it', async () => {
  const { calls, client } = gateway(undefined, says(429, away, { 'Retry-After': '30' }));
  const leave = new AbortController();
  const waiting = client.wait('task_1', { signal: leave.signal });
  setTimeout(() => leave.abort(new Error('left')), 50);
  await assert.rejects(waiting, /left/);
  assert.deepEqual(calls.map((c) => c.path), ['/v1/tasks/task_1/events', '/v1/tasks/task_1?wait=5']);
});

test('an answer that came is not asked for again, whatever it holds', async () => {
  const speech = gateway(says(200, 'ID3 sound'), says(200, ack));
  await assert.rejects(speech.client.submit('eta', {}, { endpoint: '/v1/audio/speech' }), /not the path of a submit/);
  assert.equal(speech.calls.length, 0);
  for (const bad of ['<html>', '', '{"ok":true}', '{"data":[{"task_id":"a b"}]}', JSON.stringify(ack).slice(0, 40)]) {
    const other = gateway(says(200, bad), says(200, ack));
    await assert.rejects(
      other.client.submit('m', {}, { endpoint: '/v1/artgen/generations/high-variation', idempotencyKey: 'k' }),
      (e) => e instanceof UnknownError && e.idempotencyKey === 'k' && e.message.endsWith(`names no task: ${JSON.stringify(bad)}`),
    );
    assert.equal(other.calls.length, 1);
  }
  const erased = gateway(new Response(null, { status: 204 }), says(400, { error: { message: 'invalid task id' } }));
  assert.equal(await erased.client.call('DELETE', '/v1/tasks/task_1'), undefined);
  assert.equal(erased.calls.length, 1);
});

test('a run tells progress and returns files', async () => {
  const { client } = gateway(says(200, ack), says(404, '<html>'), says(200, { data: { id: 'task_1', status: 'processing', progress: 40 } }), undefined, says(200, { data: completed }), says(200, 'film'));
  const heard = [];
  const task = await client.run('m', {}, { endpoint: '/v1/videos/generations', onProgress: (t) => heard.push(t.progress) });
  assert.deepEqual(heard, [40]);
  assert.deepEqual(files(task), [{ n: 1, url: 'https://s3.example.com/a', mediaType: 'video/mp4', expiresAt: new Date(1000) }]);
  assert.equal(await (await client.download(files(task)[0])).text(), 'film');
});

test('a stream that breaks off within an event goes on behind the last whole one', async (t) => {
  const now = { id: 'task_1', status: 'processing', progress: 40 };
  for (const end of [undefined, new Error('cut')]) {
    const { calls, client } = gateway(
      stream(':\n\n', event(7, now), event(8, completed).slice(0, 60), end), says(200, { data: now }), stream(event(8, completed).replaceAll('\n', '\r\n')),
    );
    const heard = [];
    const waited = await elapsed(t, async () => assert.deepEqual(await client.wait('task_1', { onProgress: (now) => heard.push(now.progress) }), completed));
    assert.ok(waited >= 1000, 'it pauses between two streams');
    assert.deepEqual(heard, [40, 40]);
    assert.deepEqual(calls.map((c) => [c.path, c.headers.get('Last-Event-ID')]), [
      ['/v1/tasks/task_1/events', null], ['/v1/tasks/task_1?wait=1', null], ['/v1/tasks/task_1/events', '7'],
    ]);
  }
});

// Answers with the status 200 that are not the task task_1.
const noTasks = {
  'a page': '<html>',
  nothing: '',
  'something else': '{"ok":true}',
  'no task': '{"data":null}',
  'another task': JSON.stringify({ data: { ...completed, id: 'task_2' } }),
  'half a task': JSON.stringify({ data: completed }).slice(0, 60),
  'a task of no kind': '{"data":{"id":"task_1"}}',
};
const always = (answer, calls = []) => ({
  calls,
  client: new Mediagate({ url: 'https://gateway.example.com', key: 'key', fetch: async (url, init) => (calls.push({ url, ...init }), answer(init.signal)) }),
});

for (const [name, bad] of Object.entries(noTasks)) {
  test(`${name} counts as a lost answer`, async (t) => {
    const { calls, client } = gateway(says(404, '<html>'), says(200, bad), says(200, bad), says(200, { data: completed }));
    const waited = await elapsed(t, async () => assert.deepEqual(await client.wait('task_1', { onProgress: () => assert.fail('it is no progress') }), completed));
    assert.equal(calls.length, 4);
    assert.ok(waited >= 1500 && waited < 3000, `it took ${waited} ms`);

    const once = always(() => says(200, bad));
    await elapsed(t, () => assert.rejects(once.client.task('task_1'), /the answer is not the task task_1: /));
    assert.equal(once.calls.length, 6);
    await assert.rejects(once.client.cancel('task_1'), /the answer is not the task task_1: /);
    assert.equal(once.calls.length, 7);
  });
}

test('a wait bears answers that are no task for ten minutes', async (t) => {
  const { calls, client } = always(() => says(200, '<html>'));
  const waited = await elapsed(t, () => assert.rejects(client.wait('task_1'), /the answer is not the task task_1: /));
  assert.ok(calls.length <= 250 && waited < 660_000, `${calls.length} calls in ${waited} ms`);
});

test('a gateway that does not wait is asked once in a second', async (t) => {
  const now = { id: 'task_1', status: 'processing', progress: 40 };
  const calls = [];
  const hasty = new Mediagate({
    url: 'https://gateway.example.com', key: 'key',
    fetch: async (url) => (calls.push(url), url.endsWith('/events') ? stream(event(calls.length, now), event(calls.length, { ok: true })) : says(200, { data: now })),
  });
  const leave = new AbortController();
  await elapsed(t, () => {
    setTimeout(() => leave.abort(new Error('left')), 10_000);
    return assert.rejects(hasty.wait('task_1', { signal: leave.signal }), /left/);
  });
  assert.ok(calls.length <= 25, `${calls.length} calls in ten seconds`);
});

test('nothing is answered from a cache, or elsewhere', async () => {
  const { calls, client } = gateway(stream(), says(200, { data: completed }), says(302, '', { Location: 'https://login.example.com' }));
  await client.wait('task_1');
  await assert.rejects(client.task('task_1'), (e) => e instanceof GatewayError && e.status === 302 && e.message === 'redirected to https://login.example.com, which is not followed');
  assert.deepEqual(calls.map((c) => [c.cache, c.redirect]), Array(3).fill(['no-store', 'manual']));
});

test('a server that is silent holds nobody', async (t) => {
  const options = { endpoint: '/v1/videos/generations', idempotencyKey: 'k' };
  for (const [name, answer] of [['before its answer', silent], ['within its answer', begun], ['within its events', (signal) => begun(signal, 'text/event-stream')]]) {
    for (const [call, good, most, does] of [
      ['wait', { data: completed }, 98, (c) => c.wait('task_1')],
      ['submit', ack, 62, (c) => c.submit('m', {}, options)],
      ['a call of its own', {}, 182, (c) => c.call('GET', '/v1/tasks/task_1?wait=60')],
      ['cancel', undefined, 30, (c) => c.cancel('task_1')],
      ['upload', undefined, 46, (c) => c.upload('images', new Blob(['a'.repeat(16 << 14)]))],
      ['download', undefined, 30, async (c) => (await c.download({ n: 1, url: 'https://s3.example.com/a' })).text()],
    ]) {
      let calls = 0;
      const { client } = always((signal) => (++calls > 2 && good ? says(200, good) : answer(signal)));
      let failure;
      const waited = await elapsed(t, () => does(client).catch((error) => { failure = error; }));
      assert.equal(failure?.message, good ? undefined : 'the server is silent: the answer did not come in time', `${call} ${name}`);
      assert.ok(waited <= (most + 4) * 1000, `${call} ${name}: ${waited} ms`); // the clock goes in steps
    }
  }
});

test('a wait asks again though its answer comes byte for byte, and a file comes as slowly as it likes', async (t) => {
  const slowly = (signal, text) => new Response(new ReadableStream({
    start: (controller) => signal.addEventListener('abort', () => controller.error(signal.reason)),
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 20_000));
      if (signal.aborted) return;
      if (text === '') return controller.close();
      controller.enqueue(new TextEncoder().encode(text[0]));
      text = text.slice(1);
    },
  }, { highWaterMark: 0 }));
  let calls = 0;
  const { client } = always((signal) => [says(404, ''), slowly(signal, JSON.stringify({ data: completed })), says(200, { data: completed }), slowly(signal, 'film')][calls++]);
  const waited = await elapsed(t, () => client.wait('task_1'));
  assert.ok(waited < 60_000 && calls === 3, `${calls} calls in ${waited} ms`);
  await elapsed(t, async () => assert.equal(await (await client.download(files(completed)[0])).text(), 'film'));
});

test('a signal ends a stream, and so does what onProgress throws', async () => {
  const now = event(1, { id: 'task_1', status: 'processing', progress: 40 });
  const { client } = gateway(stream(now, ...Array(9).fill(now)), stream(now));
  await assert.rejects(client.wait('task_1', { onProgress: () => { throw new Error('mine'); } }), /mine/);
  const left = AbortSignal.abort(new Error('left'));
  await assert.rejects(client.wait('task_1', { signal: left }), /left/);
});

test('an end that is not known tells how to go on', async () => {
  const { client } = gateway(says(200, ack), stream(event(1, { id: 'task_1', status: 'processing', progress: 40 })));
  const leave = new AbortController();
  const run = client.run('m', {}, { endpoint: '/v1/videos/generations', idempotencyKey: 'k', signal: leave.signal, onProgress: () => leave.abort(new Error('left')) });
  const waited = await run.then(() => assert.fail(), (e) => e);
  assert.ok(waited instanceof UnknownError, String(waited));
  assert.deepEqual([waited.taskId, waited.idempotencyKey, waited.cause.message], ['task_1', 'k', 'left']);

  const lost = new AbortController();
  const { calls, client: away } = gateway();
  const submit = away.submit('m', {}, { endpoint: '/v1/videos/generations', signal: lost.signal });
  setTimeout(() => lost.abort(new Error('left')), 50);
  const unknown = await submit.then(() => assert.fail(), (e) => e);
  assert.ok(unknown instanceof UnknownError, String(unknown));
  assert.deepEqual([unknown.taskId, unknown.idempotencyKey], [undefined, calls[0].key]);
  assert.ok(unknown.message.includes(calls[0].key));
});

test('a chain is submitted at once, by files that do not exist yet', async () => {
  const { calls, client } = gateway(says(200, ack), says(200, ack));
  const endpoint = '/v1/images/generations';
  const still = await client.submit('a', { prompt: 'a boat' }, { endpoint });
  await client.submit('b', { image_urls: [fileOf(still), fileOf(still, 2)] }, { endpoint });
  assert.deepEqual(JSON.parse(calls[1].body), { image_urls: ['/v1/tasks/task_1/files/1', '/v1/tasks/task_1/files/2'], model: 'b' });
});

test('unknown fields are refused where that was asked for', async () => {
  const { calls, client } = gateway(says(200, ack));
  const strict = new Mediagate({ url: 'https://gateway.example.com', key: 'key', strict: true, fetch: async (url, init) => (calls.push(init), says(200, ack)) });
  await strict.submit('m', {}, { endpoint: '/v1/videos/generations' });
  await client.submit('m', {}, { endpoint: '/v1/videos/generations' });
  assert.deepEqual(calls.map((c) => c.headers.get('Mediagate-Strict')), ['true', null]);
});

test('a task that does not complete is an error', async () => {
  const { client } = gateway(says(200, ack), stream(event(1, { id: 'task_1', status: 'failed', error: { code: 'generation_failed', message: 'no' } })));
  const error = await client.run('m', {}, { endpoint: '/v1/videos/generations' }).then(() => assert.fail(), (e) => e);
  assert.ok(error instanceof TaskError);
  assert.equal(error.message, 'task task_1 failed: no (generation_failed)');
});

test('a link gets no key, and one that has ended is an error', async () => {
  const { calls, client } = gateway(says(403, 'expired'));
  await assert.rejects(client.download({ n: 2, url: 'https://s3.example.com/b' }), /file 2: the link answered 403/);
  assert.equal(calls[0].headers, undefined);
});

test('a webhook is a task if its signature holds', async () => {
  const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`;
  const body = JSON.stringify(completed);
  const signed = (at) => {
    const timestamp = String(Math.floor(at / 1000));
    const signature = createHmac('sha256', '0123456789abcdef0123456789abcdef').update(`task_1.${timestamp}.${body}`).digest('base64');
    return { 'Webhook-Id': 'task_1', 'webhook-timestamp': timestamp, 'webhook-signature': `v1,b2xk v1a,${signature} v1,${signature}` };
  };
  assert.equal((await verifyWebhook(secret, signed(Date.now()), body)).id, 'task_1');
  const { Headers: Foreign } = runInNewContext('({ Headers: class { #pairs; constructor(pairs) { this.#pairs = pairs; } [Symbol.iterator]() { return this.#pairs[Symbol.iterator](); } } })');
  const pairs = Object.entries(signed(Date.now()));
  for (const headers of [
    new Headers(pairs), new Foreign(pairs), new Map(pairs), pairs,
    Object.fromEntries([...pairs.map(([name, value]) => [name, name === 'webhook-signature' ? value.split(' ') : [value]]), [':path', '/hooks']]), // of HTTP/2
  ]) {
    assert.equal((await verifyWebhook(secret, headers, new TextEncoder().encode(body))).id, 'task_1');
  }
  await assert.rejects(verifyWebhook(secret, signed(Date.now()), body.replace('100', '99')), /no signature/);
  await assert.rejects(verifyWebhook(secret, signed(Date.now() - 400_000), body), /five minutes/);
  await assert.rejects(verifyWebhook(secret, signed(Date.now() + 400_000), body), /five minutes/);
  await assert.rejects(verifyWebhook(secret, { ...signed(Date.now()), 'webhook-signature': '' }, body), /no signature/);
  await assert.rejects(verifyWebhook(secret, {}, body), /no id/);
});
