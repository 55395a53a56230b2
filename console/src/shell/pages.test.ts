import { expect, test } from 'vitest';
import type { Scope, Session } from '../api/types';
import { homeOf, mayOpen } from './pages';

const session = (...scopes: Scope[]) => ({ operator: false, key: { scopes } }) as Session;
const operator = { operator: true, key: null } as Session;

test.each([
  [operator, '/operator'],
  [session('generate', 'read', 'manage'), '/playground'],
  [session('read'), '/playground'],
  [session('generate', 'manage'), '/keys'],
  [session('generate'), '/account'],
])('a session begins with a page that it may open', (who, home) => {
  expect(homeOf(who)).toBe(home);
  expect(mayOpen(who, home)).toBe(true);
});

test.each([
  [operator, '/tasks', false],
  [operator, '/account', false],
  [operator, '/operator/tasks/task_1', true],
  [session('read'), '/tasks/task_1', true],
  [session('read'), '/keys', false],
  [session('manage'), '/playground', false],
  [session('manage'), '/keys', true],
  [session('manage'), '/webhooks/ep_1', true],
  [session('read', 'manage'), '/operator/audit', false],
])('a session may open what its key is for', (who, path, may) => {
  expect(mayOpen(who, path)).toBe(may);
});
