// The link from a file of a task to the models that take such a file.
import { Link } from '@tanstack/react-router';
import type { Item, Task } from '../api/types';
import { mayUse, useSession } from '../session';
import { words } from '../words';
import { mediaOf, numberOf } from './files';
import css from './task.module.css';

const w = words.task;

/** Opens the playground with a file of the task as an input. Without an item it is the first file, which the task has
 * still to make. */
export function UseAsInput({ task, item }: { task: Task; item?: Item | undefined }) {
  const session = useSession();
  const file = item ? numberOf(task, item) : 1;
  if (file < 1 || !mediaOf(task, item) || !mayUse(session, 'generate') || !mayUse(session, 'read')) return null;
  return (
    <Link to="/playground" search={{ input: task.id, file: String(file) }} className={`button ${css.useasinput}`} aria-label={file > 1 ? w.useFileAsInput(file) : w.useAsInput}>
      {w.useAsInput}
    </Link>
  );
}
