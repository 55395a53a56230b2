import { expect, test } from 'vitest';
import { callbackTone, wasTaken } from './callback';

test.each([
  [200, true],
  [204, true],
  [302, false],
  [404, false],
  [500, false],
  [null, false],
])('a callback answered with %s is taken: %s', (status, taken) => {
  expect(wasTaken({ status })).toBe(taken);
});

test.each([
  ['pending', 'completed', 'busy'],
  ['delivered', 'completed', 'good'],
  ['abandoned', 'failed', 'bad'],
  ['dropped', 'completed', 'warn'],
  ['dropped', 'cancelled', 'neutral'],
] as const)('the badge of a %s callback of a %s task is %s', (state, status, tone) => {
  expect(callbackTone({ webhook: { state }, status })).toBe(tone);
});
