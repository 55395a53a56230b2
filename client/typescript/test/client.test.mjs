import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import * as behaviours from '../dist/behaviours.js';
import { files, GatewayError, Mediagate, UnknownError, verifyWebhook } from '../dist/index.js';
import { gateway, play, read } from './exchanges.mjs';

test('the table of behaviours is that of all clients', () => {
  const own = Object.entries(behaviours).map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]);
  assert.deepEqual(Object.fromEntries(own), read('behaviours'));
});

for (const name of ['submit', 'wait', 'task', 'webhook']) {
  for (const script of read(`exchanges/${name}`)) test(`${name}: ${script.name}`, { timeout: 60_000 }, () => play(script));
}

const ack = { json: { data: [{ task_id: 'task_1' }] } };
const working = { json: { data: { id: 'task_1', status: 'processing', progress: 40 } } };
const client = (...answers) => new Mediagate({ url: 'https://gateway.example.com', key: 'key', fetch: gateway(answers) });
const fails = (promise) => promise.then(() => assert.fail('it succeeded'), (error) => error);

test('nothing is answered from a cache, or elsewhere', async () => {
  const calls = [];
  const gate = new Mediagate({ url: 'https://gateway.example.com', key: 'key', fetch: (url, init) => (calls.push(init), gateway([working])(url, init)) });
  await gate.task('task_1');
  assert.deepEqual(calls.map((init) => [init.cache, init.redirect]), [['no-store', 'manual']]);
});

test('what onProgress throws ends a wait', async () => {
  await assert.rejects(client(working).wait('task_1', { onProgress: () => { throw new Error('mine'); } }), /mine/);
});

test('an end that is not known tells how to go on', async () => {
  const options = { endpoint: '/v1/videos/generations', idempotencyKey: 'k' };
  const leave = new AbortController();
  const waited = await fails(client(ack, working, working).run('m', {}, { ...options, signal: leave.signal, onProgress: () => leave.abort(new Error('left')) }));
  assert.ok(waited instanceof UnknownError, String(waited));
  assert.deepEqual([waited.taskId, waited.idempotencyKey, waited.cause.message], ['task_1', 'k', 'left']);
  const unknown = await fails(client({ text: '<html>' }).submit('m', {}, options));
  assert.ok(unknown instanceof UnknownError, String(unknown));
  assert.deepEqual([unknown.taskId, unknown.idempotencyKey], [undefined, 'k']);
});

test('a refusal says whether the same call may succeed later', async () => {
  const refused = async (answer) => {
    const error = await fails(client(answer).cancel('task_1'));
    assert.ok(error instanceof GatewayError, String(error));
    return [error.temporary, error.retryAfter];
  };
  assert.deepEqual(await refused({ status: 429, header: { 'Retry-After': '7' }, text: '' }), [true, 7]);
  assert.deepEqual(await refused({ status: 504, header: { 'X-Should-Retry': 'false' }, text: '' }), [false, undefined]);
  assert.deepEqual(await refused({ status: 404, text: '' }), [false, undefined]);
});

test('a file has its number, its kind and the end of its link', () => {
  const task = { id: 'task_1', status: 'completed', result: { videos: [{ url: ['https://s3.example.com/a'], expires_at: 1, mime_type: 'video/mp4' }] } };
  assert.deepEqual(files(task), [{ n: 1, url: 'https://s3.example.com/a', mediaType: 'video/mp4', expiresAt: new Date(1000) }]);
});

test('the headers of a webhook come in every form', async () => {
  const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`;
  const body = '{"id":"task_1","status":"completed"}';
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', '0123456789abcdef0123456789abcdef').update(`task_1.${timestamp}.${body}`).digest('base64');
  const pairs = Object.entries({ 'Webhook-Id': 'task_1', 'webhook-timestamp': timestamp, 'webhook-signature': `v1,b2xk v1,${signature}` });
  const { Headers: Foreign } = runInNewContext('({ Headers: class { #pairs; constructor(pairs) { this.#pairs = pairs; } [Symbol.iterator]() { return this.#pairs[Symbol.iterator](); } } })');
  for (const headers of [
    new Headers(pairs), new Foreign(pairs), new Map(pairs), pairs,
    Object.fromEntries([...pairs.map(([name, value]) => [name, name === 'webhook-signature' ? value.split(' ') : [value]]), [':path', '/hooks']]), // of HTTP/2
  ]) {
    assert.equal((await verifyWebhook(secret, headers, new TextEncoder().encode(body))).task.id, 'task_1');
  }
});
