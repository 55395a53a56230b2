// The tasks whose results are shown side by side: their ids in the page's address, newest first.
import { taskIdIn } from '../../task/files';

const most = 4;

export function shownTasks(param: string | undefined): string[] {
  return (param ?? '').split(',').filter((id) => taskIdIn(id) === id).slice(0, most);
}

/** The address's value with one more task, which comes first. */
export function withTask(param: string | undefined, id: string): string {
  return [id, ...shownTasks(param).filter((other) => other !== id)].slice(0, most).join(',');
}

export function withoutTask(param: string | undefined, id: string): string | undefined {
  return shownTasks(param).filter((other) => other !== id).join(',') || undefined;
}
