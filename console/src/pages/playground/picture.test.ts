import { expect, test } from 'vitest';
import { isPicture } from './picture';

const bytes = (text: string) => Uint8Array.from(text, (c) => c.charCodeAt(0));

test.each([
  ['\xff\xd8\xff\xe0\x00\x10JFIF', true],
  ['\x89PNG\r\n\x1a\n\x00\x00\x00\r', true],
  ['RIFF\x00\x00\x00\x00WEBP', true],
  ['GIF89a', true],
  ['RIFF\x00\x00\x00\x00WAVE', false],
  ['%PDF-1.7', false],
  ['', false],
])('%j is a picture: %s', (head, is) => {
  expect(isPicture(bytes(head))).toBe(is);
});
