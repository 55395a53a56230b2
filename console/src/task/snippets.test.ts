import { expect, test } from 'vitest';
import { firstCall, flagValue, languagesFor, snippet } from './snippets';

// TestConsoleCode runs each program.
test('a value of mediagate run keeps its type', () => {
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

test('a program ends with its files, but for a voice, which has none', () => {
  const curl = (endpoint: string) => snippet('curl', { base: 'https://api.example.com', endpoint, body: {} });
  expect(curl('/v1/music/generations')).toContain('--remote-name-all');
  expect(curl('/v1/music/generations/createVoice')).not.toContain('Download');
});

test('the first call is three commands, and downloads a file of the right type', () => {
  const call = { base: 'https://api.example.com', endpoint: '/v1/images/generations', body: { model: 'm', prompt: "it's" } };
  expect(firstCall(call).match(/^curl/gm)).toHaveLength(3);
  expect(firstCall(call)).toContain("it'\\''s");
  expect(firstCall(call)).toContain('-o result.png');
  expect(firstCall({ ...call, endpoint: '/v1/videos/generations' })).toContain('-o result.mp4');
  expect(firstCall({ ...call, endpoint: '/v1/audio/speech' })).toContain('speech.mp3');
});
