import { expect, test } from 'vitest';
import { bodyOf, healthOf, nextLook, pretty, settingsOf, type Delivery, type Endpoint } from './endpoints';

const endpoint = (changes: Partial<Endpoint>) =>
  ({ url: 'https://a.example.com', events: ['task.failed'], enabled: true, description: null, balance_low: null, failing_since: null, disabled_at: null, disabled_reason: null, ...changes }) as Endpoint;

test.each([
  [endpoint({}), 'enabled'],
  [endpoint({ failing_since: 1 }), 'failing'],
  [endpoint({ enabled: false, disabled_reason: 'switched_off' }), 'switchedOff'],
  [endpoint({ enabled: false, disabled_reason: 'gone', failing_since: 1 }), 'gone'],
  [endpoint({ enabled: false, disabled_reason: 'failing', failing_since: 1 }), 'gaveUp'],
])('an endpoint says how it does', (of, want) => {
  expect(healthOf(of)).toBe(want);
});

test('what the form shows of an endpoint changes nothing', () => {
  expect(bodyOf(settingsOf(endpoint({ description: 'a', balance_low: '5.00' })))).toEqual({ url: 'https://a.example.com', events: ['task.failed'], description: 'a', balance_low: '5.00' });
});

test('empty fields take away, and events keep their order', () => {
  expect(bodyOf({ url: ' https://a.example.com ', events: ['balance.low', 'task.completed'], description: ' ', balanceLow: '' })).toEqual({
    url: 'https://a.example.com',
    events: ['task.completed', 'balance.low'],
    description: null,
    balance_low: null,
  });
});

test.each([
  [null, false],
  [100, 3_000],
  [189, 3_000],
  [190, false],
])('deliveries are looked at again while an attempt is due soon', (next_attempt_at, want) => {
  expect(nextLook([{ next_attempt_at } as Delivery], 100)).toBe(want);
});

test('JSON is indented, and other texts stay', () => {
  expect(pretty('{"a":1}')).toBe('{\n  "a": 1\n}');
  expect(pretty('thanks')).toBe('thanks');
});
