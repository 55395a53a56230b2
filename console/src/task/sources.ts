// The sources of a task: the tasks whose files it uses.
import type { Source, Task } from '../api/types';
import { words } from '../words';
import { pathTitle } from './request';

const w = words.task.chain;

export interface SourceTask {
  id: string;
  status: Source['status'];
  /** The first of its files that the task uses. */
  file: number;
  /** The titles of the fields that name a file of it. */
  fields: string[];
}

/** The sources of a task, one entry for each source task. */
export function groupSources(sources: readonly Source[]): SourceTask[] {
  const groups = new Map<string, SourceTask>();
  for (const { task_id: id, file, field, status } of sources) {
    const group = groups.get(id) ?? { id, status, file, fields: [] };
    group.fields.push(w.use(pathTitle(field), file));
    groups.set(id, group);
  }
  return [...groups.values()];
}

/** Whether a task still waits for one of its sources to end. */
export const waitsForSource = (task: Task) => task.status === 'pending' && !!task.sources?.some((s) => s.status === 'pending' || s.status === 'processing');
