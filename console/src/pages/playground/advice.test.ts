import { expect, test } from 'vitest';
import { ApiError } from '../../api/client';
import { words } from '../../words';
import { adviceOf } from './advice';

const w = words.playground.advice;

test.each([
  [402, "the key's quota is not enough: 5 needed, 1 left", w.limit],
  [402, "the key's cap of the day, 1, is not enough: 5 needed, 1 left", w.limit],
  [403, "the key's quota is not enough: 5 needed, 1 left", w.limit],
  [402, 'insufficient balance: 5 needed, 1 left', w.balance],
  [403, 'insufficient balance: 5 needed, 1 left', w.balance],
  [403, 'the account is suspended: what runs goes on, but it takes no new work', w.suspended],
  [403, 'the key has no scope generate', w.status[403]],
  [418, 'no coffee', undefined],
])('%d %s', (status, message, advice) => {
  expect(adviceOf(new ApiError(status, message, null, null))).toBe(advice);
});
