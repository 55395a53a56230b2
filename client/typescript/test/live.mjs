// Plays a client's paths against the gateway of MEDIAGATE_URL: a video to its file, refusals, an
// upload, a cancel, and a webhook that is received here.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { files, GatewayError, Mediagate, TaskError, verifyWebhook } from '@mediagate/client';

const client = new Mediagate({ url: process.env.MEDIAGATE_URL, key: process.env.MEDIAGATE_API_KEY, strict: true });
const fails = (promise, kind) => promise.then(() => assert.fail('it succeeded'), (error) => (assert.ok(error instanceof kind, String(error)), error));

assert.ok((await client.models('video')).some((model) => model.id === 'alpha-v3'));
const fields = { prompt: 'a red boat', duration: 5 };
const quote = await client.quote('alpha-v3', fields);

const progress = [];
const task = await client.run('alpha-v3', fields, { onProgress: (now) => progress.push(now.progress) });
assert.equal(task.cost, quote.cost);
assert.ok(progress.length > 0, 'it tells progress');
const film = Buffer.from(await (await client.download(files(task)[0])).arrayBuffer());
assert.equal(film.subarray(4, 8).toString(), 'ftyp');

const idempotencyKey = 'the same';
assert.equal(await client.submit('alpha-v3', fields, { idempotencyKey }), await client.submit('alpha-v3', fields, { idempotencyKey }));
const bad = await fails(client.submit('alpha-v3', { ...fields, duration: 99 }), GatewayError);
assert.deepEqual([bad.status, bad.param, bad.reason], [400, 'duration', 'out_of_range']);
assert.equal((await fails(client.submit('alpha-v3', { ...fields, durations: 5 }), GatewayError)).reason, 'unknown_field');
assert.equal((await fails(client.task('task_none'), GatewayError)).status, 400);
const refused = await fails(client.run('alpha-v3', { prompt: 'forbidden [[sandbox: fail=moderation]]' }), TaskError);
assert.equal(refused.task.error.code, 'content_policy_violation');

const picture = await client.upload('images', new Blob([Buffer.from(process.argv[2], 'base64')]), 'cat.png');
assert.equal(picture.filename, 'cat.png');
const clip = await client.upload('videos', new Blob([film]), 'boat.mp4');
assert.deepEqual([clip.content_type, clip.bytes], ['video/mp4', film.length]);

const slow = await client.submit('alpha-v3', { prompt: 'slow [[sandbox: duration=600]]' });
await client.cancel(slow);
assert.equal((await client.wait(slow)).status, 'cancelled');

const hooks = createServer();
hooks.listen(0, '127.0.0.1');
await once(hooks, 'listening');
const { secret } = await client.call('GET', '/v1/webhooks/secret');
const id = await client.submit('alpha-v3', { ...fields, webhook: `http://127.0.0.1:${hooks.address().port}/hooks` });
const [request, response] = await once(hooks, 'request');
const chunks = [];
for await (const chunk of request) chunks.push(chunk);
const body = Buffer.concat(chunks);
response.end();
const tested = client.call('POST', '/v1/webhooks/test', { body: JSON.stringify({ url: `http://127.0.0.1:${hooks.address().port}/hooks` }) });
(await once(hooks, 'request'))[1].writeHead(204).end();
assert.deepEqual([(await tested).delivered, (await tested).status], [true, 204]);
const told = await verifyWebhook(secret, request.headers, body);
assert.deepEqual([told.type, told.task.id], ['task.completed', id]);
await assert.rejects(verifyWebhook(secret, request.headers, Buffer.concat([body, Buffer.from(' ')])));
hooks.close();
hooks.closeAllConnections();
