import { expect, test } from 'vitest';
import { formatAmount } from './format';

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
