import { expect, test } from 'vitest';
import { mediaOf, taskFileOf, taskIdIn, typedAddress } from './files';

const id = 'task_01KAJ5XW4M9Q7T2C8N6BVRE3HD';
const origin = 'https://api.example.com';

test.each([
  [`/v1/tasks/${id}/files/2`, { task: id, file: 2 }],
  [`${origin}/v1/tasks/${id}/files/1`, { task: id, file: 1 }],
  [`https://other.example.com/v1/tasks/${id}/files/1`, undefined],
  [`/v1/tasks/${id}/files/0`, undefined],
  [`/v1/tasks/${id}/files/1?download=a`, undefined],
  [`/v1/tasks/../files/1`, undefined],
  ['https://media.example.com/fox.png', undefined],
])('the address %s is the file %o', (address, file) => {
  expect(taskFileOf(address, origin)).toEqual(file);
});

test.each([
  [id, `/v1/tasks/${id}/files/1`],
  [` ${id}#3 `, `/v1/tasks/${id}/files/3`],
  [`${id}#0`, `${id}#0`],
  ['https://media.example.com/fox.png', 'https://media.example.com/fox.png'],
])('typed %s is the address %s', (text, address) => {
  expect(typedAddress(text)).toBe(address);
});

test.each([
  ['video', undefined, 'video'],
  ['art', 'image/png', 'image'],
  ['music', undefined, 'audio'],
  ['music', 'application/zip', undefined],
] as const)('a file of a task of type %s, %s, is %s', (type, mime_type, media) => {
  expect(mediaOf({ type }, mime_type && { mime_type })).toBe(media);
});

test('only a whole id leads to its task', () => {
  expect(taskIdIn(` ${id} `)).toBe(id);
  expect([`${id}#2`, id.slice(0, -1), 'order 7'].map(taskIdIn)).toEqual([undefined, undefined, undefined]);
});
