import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { words } from '../words';
import { addressesIn, fieldTitle, operationTitle, pathTitle, promptOf, repeatable, settingsOf } from './request';

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

test('the path of a field reads as its title', () => {
  expect(['image_urls[0]', 'first_frame_image', 'multi_prompt[1].duration', 'image_with_roles[0].url'].map(pathTitle)).toEqual(['Image 1', 'First frame image', 'Multi prompt 2, Duration', 'Image with roles 1']);
});

test('a task without a prompt is named by its operation', () => {
  expect(operationTitle({ type: 'art', action: 'HIGH_VARIATION', endpoint: '/v1/artgen/generations/variation' })).toBe('Strong variation');
  expect(operationTitle({ type: 'music', endpoint: '/v1/music/generations/stemsAll' })).toBe('Separate the tracks');
  expect(operationTitle({ type: 'image', endpoint: '/v1/images/generations' })).toBe('Image');
  expect(operationTitle({ type: 'art' })).toBe('Art');
});

test.each(['art', 'music-a', 'music-b'])('each operation of %s that may have no prompt has a title', (model) => {
  const file = readFileSync(new URL(`../../../catalog/models/${model}.yaml`, import.meta.url), 'utf8');
  const { operations } = parse(file) as { operations: { endpoint: string; action?: string }[] };
  // The first operation has a prompt, and the modal call makes no task.
  const others = operations.slice(1).filter(({ endpoint }) => !/\/(imagine|modal)$/.test(endpoint));
  const type = model === 'art' ? 'art' : 'music';
  expect(others.filter((operation) => operationTitle({ type, ...operation }) === words.tasks.types[type])).toEqual([]);
});

test('media of a request are found by their addresses', () => {
  expect(addressesIn(['https://example.com/a.png', { url: '/v1/tasks/task_1/files/2' }, 'a cat', 5])).toEqual(['https://example.com/a.png', '/v1/tasks/task_1/files/2']);
  expect(addressesIn('https://example.com/a.mp4')).toEqual(['https://example.com/a.mp4']);
  expect(addressesIn(true)).toEqual([]);
});
