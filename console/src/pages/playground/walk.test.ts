import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Schema, Values } from './schema';
import { bodyOf, openFields, setAt } from './walk';

const catalog = new URL('../../../../catalog/models/music-a.yaml', import.meta.url);
const song = (parse(readFileSync(catalog, 'utf8')) as { operations: { schema: Schema }[] }).operations[0]!.schema;

test('a field that does not count is not sent', () => {
  const values = { prompt: 'a boat', gpt_description: 'a calm song', version: 'v5', title: '' };
  expect(bodyOf(song, 'music-a', { ...values, custom: false })).toEqual({ custom: false, gpt_description: 'a calm song', version: 'v5' });
  expect(bodyOf(song, 'music-a', { ...values, custom: true })).toEqual({ custom: true, prompt: 'a boat', version: 'v5' });
});

test('a field keeps its value while it is hidden', () => {
  const described = setAt({ gpt_description: 'a calm song' }, ['custom'], true);
  expect(bodyOf(song, 'music-a', described as Values)).toEqual({ custom: true });
  expect(bodyOf(song, 'music-a', setAt(described, ['custom'], false) as Values)).toEqual({ custom: false, gpt_description: 'a calm song' });
});

test('conditions, references and lists of one item are resolved for the values', () => {
  const $defs = { url: { type: 'string', format: 'uri' } } as const;
  const schema: Schema = {
    $defs,
    properties: { size: { enum: ['s', 'l'] }, seconds: { title: 'Seconds', enum: [5, 10] }, frame: { title: 'Frame', $ref: '#/$defs/url' }, clips: { type: 'array', prefixItems: [{ $ref: '#/$defs/url' }], items: {} } as Schema, fixed: { type: 'integer', const: 1 }, shots: { title: 'Shots' } },
    allOf: [
      { if: { properties: { size: { const: 'l' } }, required: ['size'] }, then: { required: ['frame'], properties: { seconds: { enum: [5] } } } },
      { if: { required: ['frame'] }, then: { if: { required: ['clips'] }, else: { properties: { shots: { type: 'array' } } } }, else: { properties: { clips: { not: {} } } } },
    ],
  };
  const names = (values: Values) => [...openFields(schema, schema, values).keys()];
  expect(names({})).toEqual(['size', 'seconds', 'frame']);
  expect(names({ frame: 'https://a' })).toEqual(['size', 'seconds', 'frame', 'clips', 'shots']);
  expect(names({ clips: ['https://b'] })).toEqual(['size', 'seconds', 'frame', 'clips']);
  const open = openFields(schema, schema, { size: 'l', frame: 'https://a' });
  expect(open.get('seconds')).toEqual({ title: 'Seconds', enum: [5] });
  expect(open.get('frame')).toEqual({ title: 'Frame', ...$defs.url });
  expect(open.get('clips')).toEqual({ type: 'array', items: { $ref: '#/$defs/url' }, maxItems: 1 });
});

test('a value is set at the end of a path, and nothing else changes', () => {
  const before = { prompt: 'a', shots: [{ duration: 1 }, { duration: 2 }] };
  expect(setAt(before, ['shots', 1, 'duration'], 3)).toEqual({ prompt: 'a', shots: [{ duration: 1 }, { duration: 3 }] });
  expect(setAt(before, ['shots'], undefined)).toEqual({ prompt: 'a', shots: undefined });
  expect(setAt({}, ['metadata', 'sound'], 'auto')).toEqual({ metadata: { sound: 'auto' } });
});
