import { useQuery } from '@tanstack/react-query';
import type { TaskFile } from './files';
import { Poster } from './Poster';
import { taskQuery } from './useTask';
import css from './task.module.css';

/** A file of a task as a small image, or as the symbol of its type. */
export function TaskThumb({ file, alt }: { file: TaskFile; alt: string }) {
  const { data } = useQuery(taskQuery(file.task));
  return (
    <span className={`${css.filethumb} ${css.taskthumb}`} {...(alt ? { role: 'img', 'aria-label': alt } : { 'aria-hidden': true })}>
      {data && <Poster task={data} file={file.file} small />}
    </span>
  );
}
