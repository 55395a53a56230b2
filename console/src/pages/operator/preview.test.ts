import { expect, test } from 'vitest';
import { operatorWords } from '../../words/operator';
import { previewOf } from './preview';

const skip = operatorWords.bulk.skip;

test('a preview counts what is changed and what is skipped, the most frequent reason first', () => {
  expect(previewOf({ matched: 7, checked: 7, applies: 2, skipped: { ending: 1, ended: 4 } })).toEqual({
    checked: 7,
    isPartial: false,
    applies: 2,
    skips: 5,
    skipped: [
      { reason: 'ended', text: skip.ended, n: 4 },
      { reason: 'ending', text: skip.ending, n: 1 },
    ],
    isIdle: false,
  });
});

test('a job that skips all tasks changes nothing, unless tasks are left that were not checked', () => {
  const none = { checked: 1000, applies: 0, skipped: { ended: 1000 } };
  expect(previewOf({ matched: 1000, ...none })).toMatchObject({ isPartial: false, isIdle: true });
  expect(previewOf({ matched: 1001, ...none })).toMatchObject({ isPartial: true, isIdle: false });
});

test('an unknown reason is shown by its code, and an older API has no preview', () => {
  expect(previewOf({ matched: 1, checked: 1, applies: 0, skipped: { asleep: 1 } as object })!.skipped).toEqual([{ reason: 'asleep', text: 'asleep', n: 1 }]);
  expect(previewOf({ matched: 1, tasks: ['task_1'] })).toBeNull();
});
