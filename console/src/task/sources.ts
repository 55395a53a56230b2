// The tasks that a task is made from.
import type { Source, Task } from '../api/types';
import { words } from '../words';

const w = words.task.chain;

export interface SourceTask {
  id: string;
  status: Source['status'];
  /** The first of its files that is used. */
  file: number;
  /** The fields that name a file of it. */
  fields: string[];
}

/** The sources of a task, each task once. */
export function groupSources(sources: readonly Source[]): SourceTask[] {
  const groups = new Map<string, SourceTask>();
  for (const { task_id: id, file, field, status } of sources) {
    const group = groups.get(id) ?? { id, status, file, fields: [] };
    group.fields.push(w.use(field, file));
    groups.set(id, group);
  }
  return [...groups.values()];
}

/** Whether a task waits for the end of a task that it is made from. */
export const waitsForSource = (task: Task) => task.status === 'pending' && !!task.sources?.some((s) => s.status === 'pending' || s.status === 'processing');
