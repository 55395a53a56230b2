import { expect, test } from 'vitest';
import type { Key } from '../api/types';
import { isLow, usedLimits } from './money';

const none = { day: null, week: null, month: null };
const sunday = Date.UTC(2026, 1, 1, 23);
const limitsOf = (key: Partial<Key>, at = sunday) => usedLimits({ quota: null, held: '0.00', spent: '0.00', caps: none, caps_used: none, ...key } as Key, at);

test.each([
  ['10.00', '0.99', '7.00', []],
  ['10.00', '1.00', '7.00', [80]],
  ['0.70', '0.00', '0.56', [80]],
  ['10.00', '0.00', '10.00', [100]],
  ['0.00', '0.00', '0.00', []],
  [null, '1.00', '7.00', []],
])('of a quota of %s with %s held and %s spent', (quota, held, spent, want) => {
  expect(limitsOf({ quota, held, spent }).map(({ percent }) => percent)).toEqual(want);
});

test('caps are used until their day, week or month ends in UTC', () => {
  const caps = { day: '1.00', week: '2.00', month: '3.00' };
  const ends = (at: number) => limitsOf({ caps, caps_used: caps }, at).map(({ limit, until }) => `${limit} ${new Date(until! * 1000).toISOString().slice(0, 10)}`);
  expect(ends(sunday)).toEqual(['day 2026-02-02', 'week 2026-02-02', 'month 2026-03-01']);
  expect(ends(Date.UTC(2026, 11, 31))).toEqual(['day 2027-01-01', 'week 2027-01-04', 'month 2027-01-01']);
});

test('a cap of which less than 80 % are used is left out, and one of zero', () => {
  expect(limitsOf({ caps: { ...none, day: '1.00', week: '0.00' }, caps_used: { ...none, day: '0.79', week: '0.00' } })).toEqual([]);
});

test('a balance is low below any of the bounds', () => {
  expect([isLow(5, []), isLow(5, [5]), isLow(4.99, [1, 5])]).toEqual([false, false, true]);
});
