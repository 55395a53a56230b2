import { expect, test } from 'vitest';
import { flagValue, languagesFor, snippet } from './snippets';

// That each program does what it says is in TestConsoleCode.
test('a value of mediagate run stays what it is', () => {
  expect(['a cat', '5', 'true', '{"a":1}'].map(flagValue)).toEqual(['a cat', '"5"', '"true"', '"{\\"a\\":1}"']);
  expect([5, true, ['a']].map(flagValue)).toEqual(['5', 'true', '["a"]']);
});

test('our clients have no speech', () => {
  expect(languagesFor('/v1/audio/speech')).toEqual(['curl', 'TypeScript', 'Python', 'Go']);
  expect(languagesFor('/v1/videos/generations')).toHaveLength(8);
});

test('what a task describes is printed', () => {
  const call = { base: 'https://api.example.com', endpoint: '/v1/artgen/generations/describe', body: { image_urls: ['https://example.com/a.png'] } };
  for (const language of ['curl', 'TypeScript', 'Python', 'Python client'] as const) expect(snippet(language, call)).toContain('descriptions');
});
