// Files of tasks as inputs of other tasks: their addresses and their media types.
import type { Item, Task } from '../api/types';
import { filesOf } from './useTask';

export interface TaskFile {
  task: string;
  /** The number of the file among the files of its task, from 1. */
  file: number;
}
export type Media = 'image' | 'video' | 'audio';

const taskId = 'task_[0-9A-HJKMNP-TV-Z]{26}';
const path = new RegExp(`^/v1/tasks/(${taskId})/files/([1-9]\\d{0,3})$`);
const short = new RegExp(`^(${taskId})(?:#([1-9]\\d{0,3}))?$`);

/** The task ID that a text consists of; undefined for other texts. */
export const taskIdIn = (text: string): string | undefined => new RegExp(`^${taskId}$`).exec(text.trim())?.[0];

const fileAt = (match: RegExpExecArray | null): TaskFile | undefined => (match ? { task: match[1]!, file: Number(match[2] ?? 1) } : undefined);

/** The address of a task's file, as a request names it. */
export const addressOf = ({ task, file }: TaskFile) => `/v1/tasks/${task}/files/${file}`;

/** The task's file that an address names, as a path or as a URL of this origin; undefined for other addresses. */
export function taskFileOf(address: string, origin: string): TaskFile | undefined {
  return fileAt(path.exec(address.startsWith(`${origin}/`) ? address.slice(origin.length) : address));
}

/** Turns a typed task ID into the address of its first file, and an ID with #2 into that of the second file. Other texts
 * stay as they are. */
export function typedAddress(text: string): string {
  const typed = text.trim();
  const file = fileAt(short.exec(typed));
  return file ? addressOf(file) : typed;
}

const made: Record<Task['type'], Media> = { video: 'video', image: 'image', art: 'image', music: 'audio' };

/** The kind of media that a task or one of its files is; undefined for other files, such as an archive of tracks. */
export function mediaOf(task: Pick<Task, 'type'>, item?: Pick<Item, 'mime_type'>): Media | undefined {
  if (!item?.mime_type) return made[task.type];
  return (['image', 'video', 'audio'] as const).find((media) => item.mime_type!.startsWith(`${media}/`));
}

/** The number of an item among the files of its task, from 1. */
export const numberOf = (task: Task, item: Item) => filesOf(task).indexOf(item) + 1;
