import { expect, test } from 'vitest';
import { wasTaken } from './deliveries';

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
