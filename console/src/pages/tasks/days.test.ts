import { afterAll, beforeAll, expect, test } from 'vitest';
import { dayOf, queryOf } from './Filters';

const zone = process.env.TZ;
beforeAll(() => {
  process.env.TZ = 'America/Los_Angeles';
});
afterAll(() => {
  process.env.TZ = zone;
});

// In Los Angeles, 2026-03-02T02:30:00Z is in the evening of the day before.
test('a moment is shown as the day on which the filter would find it', () => {
  const moment = String(Date.parse('2026-03-02T02:30:00Z') / 1000);
  expect(dayOf(moment)).toBe('2026-03-01');
  expect(dayOf('2026-03-02T02:30:00Z')).toBe('2026-03-01');
  const day = queryOf({ created_after: dayOf(moment), created_before: dayOf(moment) });
  expect(Number(day.created_after)).toBeLessThan(Number(moment));
  expect(Number(day.created_before)).toBeGreaterThan(Number(moment));
});

test('a day stands for itself', () => {
  expect(dayOf('2026-03-02')).toBe('2026-03-02');
  expect(dayOf('yesterday')).toBe('');
});
