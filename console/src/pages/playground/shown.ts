// The tasks whose results stand side by side. The URL holds their IDs, newest first.
import { taskIdIn } from '../../task/files';

const most = 4;

export function shownTasks(param: string | undefined): string[] {
  return (param ?? '').split(',').filter((id) => taskIdIn(id) === id).slice(0, most);
}

/** The URL's value with one more task, which comes first. */
export function withTask(param: string | undefined, id: string): string {
  return [id, ...shownTasks(param).filter((other) => other !== id)].slice(0, most).join(',');
}

export function withoutTask(param: string | undefined, id: string): string | undefined {
  return shownTasks(param).filter((other) => other !== id).join(',') || undefined;
}
