import { expect, test } from 'vitest';
import { operatorWords } from '../../words/operator';
import { runbookOf } from './runbook';

test('each reason has its page in the runbook', () => {
  const pages = Object.keys(import.meta.glob('../../../../docs/runbook/*.md')).map((file) => file.replace(/.*\/(\w+)\.md$/, '/docs/runbook/$1'));
  const missing = Object.keys(operatorWords.park).filter((reason) => !pages.includes(runbookOf(reason)));
  expect(missing).toEqual([]);
});
