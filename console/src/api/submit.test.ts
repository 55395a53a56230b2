import { expect, test } from 'vitest';
import { ApiError, AwayError } from './client';
import { SubmitKey, untilAnswered } from './submit';

const refused = new ApiError(400, 'prompt is required', 'prompt', null);

test('a request keeps its key while its answer is lost', () => {
  for (const lost of [new AwayError('unreachable'), new ApiError(502, 'bad gateway', null, null)]) {
    const keys = new SubmitKey();
    const first = keys.of({ prompt: 'a' });
    expect(keys.of({ prompt: 'a' })).toBe(first);
    keys.settle(lost);
    expect(keys.of({ prompt: 'a' })).toBe(first);
    expect(keys.of({ prompt: 'b' })).not.toBe(first);
  }
});

test('a request whose answer came gets a new key', () => {
  for (const end of [null, refused]) {
    const keys = new SubmitKey();
    const first = keys.of({ prompt: 'a' });
    keys.settle(end);
    expect(keys.of({ prompt: 'a' })).not.toBe(first);
  }
});

test('only a lost answer is asked for again', () => {
  expect(untilAnswered.retry(0, new AwayError('unreachable'))).toBe(true);
  expect(untilAnswered.retry(0, refused)).toBe(false);
  expect(untilAnswered.retry(60, new AwayError('unreachable'))).toBe(false);
});
