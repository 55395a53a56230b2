import { expect, test } from 'vitest';
import { words } from '../words';
import { addressesIn, fieldTitle, promptOf, repeatable, settingsOf } from './request';

test('a request is known by its text', () => {
  expect(promptOf({ model: 'm', lyrics: 'la', prompt: '' })).toEqual({ field: 'lyrics', text: 'la' });
  expect(promptOf({ model: 'm', task_id: 'task_1' })).toBeUndefined();
});

test('its settings are what is beside the text and the model', () => {
  expect(settingsOf({ model: 'm', prompt: 'a', duration: 5, audio: false, seed: null })).toEqual([['duration', 5], ['audio', false]]);
});

test('a request that cannot be sent again says why', () => {
  const request = { endpoint: '/v1/videos/generations', model: 'm', body: {} };
  expect(repeatable(request)).toBe(request);
  expect(() => repeatable({ ...request, endpoint: '' })).toThrow(words.task.requestInPart);
  expect(() => repeatable(null)).toThrow(words.task.requestErased);
});

test('fields have names that people read', () => {
  expect(['aspect_ratio', 'image_urls', 'seed'].map(fieldTitle)).toEqual(['Aspect ratio', 'Image', 'Seed']);
});

test('media of a request are found by their addresses', () => {
  expect(addressesIn(['https://example.com/a.png', { url: '/v1/tasks/task_1/files/2' }, 'a cat', 5])).toEqual(['https://example.com/a.png', '/v1/tasks/task_1/files/2']);
  expect(addressesIn('https://example.com/a.mp4')).toEqual(['https://example.com/a.mp4']);
  expect(addressesIn(true)).toEqual([]);
});
