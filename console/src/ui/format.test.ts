import { expect, test } from 'vitest';
import { formatAmount, formatTime, zoneName } from './format';

test.each([
  [1.5, 'USD', '$1.50'],
  ['0.000123', 'eur', '€0.000123'],
  [1234.5, 'XTS', 'XTS 1,234.50'],
  [12, 'credits', '12.00 credits'],
  ['0.5', '', '0.50 '],
  [1, 'US dollars', '1.00 US dollars'],
  [1, '€', '1.00 €'],
])('%s of %s is %s', (amount, currency, text) => {
  expect(formatAmount(amount, currency).replaceAll('\u00a0', ' ')).toBe(text);
});

test('a moment names its time zone', () => {
  expect(formatTime(1772366400, true)).toBe('1 Mar 2026, 12:00:00 UTC');
});

test.each([
  ['UTC', 'UTC'],
  ['Europe/Berlin', 'UTC+1'],
  ['America/Los_Angeles', 'UTC-8'],
  ['Asia/Kolkata', 'UTC+5:30'],
])('the zone %s is %s in winter', (zone, name) => {
  expect(zoneName(1772366400, zone)).toBe(name);
});

test('a zone follows the date', () => {
  expect(zoneName(1782907200, 'Europe/Berlin')).toBe('UTC+2');
});
