import { expect, test } from 'vitest';
import { tasksOf } from './tasks';

test('the tasks of a day are those from its first moment to its last, of the filters', () => {
  expect(tasksOf({ key: 'key_1' }, '2026-03-01', '2026-03-01', { model: 'alpha-v3' })).toEqual({
    key: 'key_1',
    model: 'alpha-v3',
    created_after: '2026-02-28T23:59:59.999999Z',
    created_before: '2026-03-02T00:00:00Z',
  });
});
