import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { initialValues, takesMedia, withFile, type Schema } from './schema';
import { faultsOf } from './validate';
import { bodyOf } from './walk';

const catalog = new URL('../../../../catalog/', import.meta.url);
const read = (name: string) => parse(readFileSync(new URL(name, catalog), 'utf8')) as unknown;
const $defs = read('definitions.yaml') as Record<string, Schema>;
const operations = readdirSync(new URL('models/', catalog)).flatMap((name) =>
  (read(`models/${name}`) as { operations: { endpoint: string; schema?: Schema }[] }).operations.flatMap(({ endpoint, schema }) => (schema ? [{ name: `${name} ${endpoint}`, schema: { ...schema, $defs } }] : [])),
);

const address = '/v1/tasks/task_01KAJ5XW4M9Q7T2C8N6BVRE3HD/files/1';
const taking = operations.flatMap((o) => (['image', 'video', 'audio'] as const).filter((media) => takesMedia(o.schema, media)).map((media) => ({ ...o, media })));

test.each(taking)('$name sends a file of a task as its $media', ({ schema, media }) => {
  const body = bodyOf(schema, 'model', withFile(schema, initialValues(schema), media, address));
  expect(JSON.stringify(body)).toContain(address);
  expect(faultsOf(schema, body).filter((fault) => !fault.missing)).toEqual([]);
});

test('files of each kind have models that take them', () => {
  expect(new Set(taking.map(({ media }) => media))).toEqual(new Set(['image', 'video', 'audio']));
});

const list: Schema = { properties: { image_urls: { type: 'array', maxItems: 2, 'x-media': { kind: 'image' } } as Schema } };
test.each([
  ['the first', undefined, [address]],
  ['one more', ['a'], ['a', address]],
  ['the last of a full list', ['a', 'b'], ['a', address]],
  ['no second time', [address, 'b'], [address, 'b']],
])('a file becomes %s of a list', (_, before, after) => {
  expect(withFile(list, { image_urls: before }, 'image', address)).toEqual({ image_urls: after });
});

test('a voice that has to be chosen is there from the start', () => {
  const speech = operations.find((o) => o.name.endsWith('/v1/audio/speech'))!;
  expect(initialValues(speech.schema)).toEqual({ voice: 'coral' });
});
