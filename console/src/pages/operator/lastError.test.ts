import { expect, test } from 'vitest';
import type { Story } from '../../api/admin';
import { lastErrorOf } from './lastError';

const attempt = (n: number, error: string | null) => ({ n, error }) as Story['attempts'][number];
const attempts = [attempt(1, 'busy: try later'), attempt(2, 'invalid_request: no'), attempt(3, null)];

test('the last error is that of the newest attempt with one', () => {
  expect(lastErrorOf({ status: 'processing', attempts })?.n).toBe(2);
  expect(lastErrorOf({ status: 'failed', attempts: attempts.slice(0, 1) })?.error).toBe('busy: try later');
});

test('a completed task, and a task without errors, have none', () => {
  expect(lastErrorOf({ status: 'completed', attempts })).toBeUndefined();
  expect(lastErrorOf({ status: 'pending', attempts: [] })).toBeUndefined();
});
