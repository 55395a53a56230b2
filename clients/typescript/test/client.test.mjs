import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { files, GatewayError, Mediagate, TaskError, UnknownError, verifyWebhook } from '../dist/index.js';

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
  const other = gateway(says(200, '<html>'), says(200, ack));
  await assert.rejects(other.client.submit('m', {}, { endpoint: '/v1/artgen/generations/high-variation' }), (e) => e instanceof UnknownError && e.cause instanceof SyntaxError);
  assert.equal(other.calls.length, 1);
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

test('a stream that breaks off within an event goes on behind the last whole one', async () => {
  const now = { id: 'task_1', status: 'processing', progress: 40 };
  for (const end of [undefined, new Error('cut')]) {
    const { calls, client } = gateway(
      stream(':\n\n', event(7, now), event(8, completed).slice(0, 60), end), says(200, { data: now }), stream(event(8, completed).replaceAll('\n', '\r\n')),
    );
    const heard = [];
    assert.deepEqual(await client.wait('task_1', { onProgress: (t) => heard.push(t.progress) }), completed);
    assert.deepEqual(heard, [40, 40]);
    assert.deepEqual(calls.map((c) => [c.path, c.headers.get('Last-Event-ID')]), [
      ['/v1/tasks/task_1/events', null], ['/v1/tasks/task_1?wait=1', null], ['/v1/tasks/task_1/events', '7'],
    ]);
  }
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
  assert.equal((await verifyWebhook(secret, new Headers(signed(Date.now())), new TextEncoder().encode(body))).id, 'task_1');
  await assert.rejects(verifyWebhook(secret, signed(Date.now()), body.replace('100', '99')), /no signature/);
  await assert.rejects(verifyWebhook(secret, signed(Date.now() - 400_000), body), /five minutes/);
  await assert.rejects(verifyWebhook(secret, signed(Date.now() + 400_000), body), /five minutes/);
  await assert.rejects(verifyWebhook(secret, { ...signed(Date.now()), 'webhook-signature': '' }, body), /no signature/);
  await assert.rejects(verifyWebhook(secret, {}, body), /no id/);
});
