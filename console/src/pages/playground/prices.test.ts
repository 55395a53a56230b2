import { expect, test } from 'vitest';
import { priceOf } from './prices';

test.each([
  [{ unit: 'operation', from: 0.01, to: 0.108 }, { amount: 0.01, isLeast: true, unit: 'each' }],
  [{ unit: 'song', from: 0.1, to: 0.1 }, { amount: 0.1, isLeast: false, unit: 'per song' }],
  [{ unit: 'character', from: 0.00006, to: 0.00006 }, { amount: 0.06, isLeast: false, unit: 'per 1,000 characters' }],
  [{ unit: 'acre', from: 1, to: 2 }, { amount: 1, isLeast: true, unit: 'acre' }],
])('a range of prices is shown by its lowest', (span, want) => {
  expect(priceOf(span)).toEqual(want);
});
