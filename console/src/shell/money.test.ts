import { expect, test } from 'vitest';
import { isLow, percentUsed } from './money';

test.each([
  [10, 2.01, 79],
  [10, 2, 80],
  [10, 0, 100],
  [10, 11, 0],
  [0, 0, 0],
])('of a quota of %d with %d left, %d percent are used', (quota, left, want) => {
  expect(percentUsed(quota, left)).toBe(want);
});

test('a balance is low below any of the bounds', () => {
  expect([isLow(5, []), isLow(5, [5]), isLow(4.99, [1, 5])]).toEqual([false, false, true]);
});
