import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { bodyOf, keepHidden } from './body';
import type { Schema } from './schema';

const catalog = new URL('../../../../catalog/models/music-a.yaml', import.meta.url);
const song = (parse(readFileSync(catalog, 'utf8')) as { operations: { schema: Schema }[] }).operations[0]!.schema;

test('a field that does not count is not sent', () => {
  const values = { prompt: 'a boat', gpt_description: 'a calm song', version: 'v5', title: '' };
  expect(bodyOf(song, 'music-a', { ...values, custom: false })).toEqual({ custom: false, gpt_description: 'a calm song', version: 'v5' });
  expect(bodyOf(song, 'music-a', { ...values, custom: true })).toEqual({ custom: true, prompt: 'a boat', version: 'v5' });
});

test('a field keeps its value while it is hidden, and what is cleared is gone', () => {
  const described = { custom: false, gpt_description: 'a calm song' };
  const custom = keepHidden(song, described, { custom: true, gpt_description: undefined }, 'root_custom');
  expect(custom).toEqual({ custom: true, gpt_description: 'a calm song' });
  expect(keepHidden(song, { ...custom, prompt: 'a boat' }, { custom: false }, 'root_custom')).toEqual({ ...described, prompt: 'a boat' });
  expect(keepHidden(song, described, { custom: false }, 'root_gpt_description')).toEqual({ custom: false });
});
