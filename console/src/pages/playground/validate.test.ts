import { expect, test } from 'vitest';
import type { Schema } from './schema';
import { titleOf, withTitle } from './validate';

const schema: Schema = { properties: { image_urls: { title: 'Reference images', type: 'array' }, prompt: { title: 'Prompt' } } };

test('a field is named by its title, an item with its place', () => {
  expect(['prompt', 'image_urls', 'image_urls[1]', 'image_urls[0].url', 'unknown[0]'].map((path) => titleOf(schema, path))).toEqual(['Prompt', 'Reference images', 'Reference images 2', 'Reference images 1', 'unknown[0]']);
});

test.each([
  ['image_urls[0]', 'image_urls[0] names a task that has failed', 'Reference images 1 names a task that has failed'],
  ['image_urls[0]', 'the link of image_urls[0] is broken', 'the link of image_urls[0] is broken'],
  ['prompt', 'prompt is required', 'prompt is required'],
])('the message of %s names an item by the title of its field', (path, message, want) => {
  expect(withTitle(schema, { path, message, missing: false }).message).toBe(want);
});
