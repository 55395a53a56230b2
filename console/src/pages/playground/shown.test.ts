import { expect, test } from 'vitest';
import { shownTasks, withoutTask, withTask } from './shown';

const [a, b, c, d, e] = ['A', 'B', 'C', 'D', 'E'].map((letter) => `task_${letter.repeat(26)}`) as [string, string, string, string, string];

test('an address names the tasks that are shown', () => {
  expect(shownTasks(undefined)).toEqual([]);
  expect(shownTasks(`${a},x,${b}`)).toEqual([a, b]);
});

test('a new task comes first, and the oldest of five goes', () => {
  expect(withTask(undefined, a)).toBe(a);
  expect(withTask(`${a},${b}`, b)).toBe(`${b},${a}`);
  expect(withTask([a, b, c, d].join(), e)).toBe([e, a, b, c].join());
});

test('a task is put away', () => {
  expect(withoutTask(`${a},${b}`, a)).toBe(b);
  expect(withoutTask(a, a)).toBeUndefined();
});
