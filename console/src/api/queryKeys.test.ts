import { expect, test } from 'vitest';
import { queryKeys } from './queryKeys';

test('no two requests share a key', () => {
  const keys = Object.values(queryKeys).map((key) => JSON.stringify(typeof key === 'function' ? (key as (...parts: string[]) => unknown)('a', 'b') : key));
  expect(new Set(keys).size).toBe(keys.length);
});

test('keys come from the factory alone', () => {
  const sources = import.meta.glob<string>(['../**/*.ts', '../**/*.tsx', '!./queryKeys*.ts'], { query: '?raw', import: 'default', eager: true });
  const own = Object.keys(sources).filter((file) => /\bquery_?key\w*\s*[:=]\s*\[/i.test(sources[file]!));
  expect(own).toEqual([]);
});
