import { expect, test } from 'vitest';
import type { Source } from '../api/types';
import { groupSources } from './sources';

test('a source is listed once, with the fields that use it', () => {
  const source = (task_id: string, file: number, field: string, status: Source['status'] = 'completed'): Source => ({ task_id, file, field, status });
  expect(groupSources([source('a', 1, 'image_urls[0]'), source('b', 1, 'video_urls[0]', 'erased'), source('a', 2, 'image_urls[1]')])).toEqual([
    { id: 'a', status: 'completed', file: 1, fields: ['Image 1', 'Image 2, file 2'] },
    { id: 'b', status: 'erased', file: 1, fields: ['Video 1'] },
  ]);
});
