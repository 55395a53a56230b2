// A file of a task as an input of the request.
import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { mediaOf, type Media, type TaskFile } from '../../task/files';
import { filesOf, taskQuery } from '../../task/useTask';

export interface InputFile extends TaskFile {
  media: Media;
}

/** The file that the URL names as an input; undefined if it names none, and until the task is loaded. */
export function useInputFile(): { input: InputFile | undefined; pending: boolean; error: unknown } {
  const search = useSearch({ from: '/frame/playground' });
  const task = search.input ?? '';
  const { data, error, isPending } = useQuery({ ...taskQuery(task), enabled: task !== '' });
  if (!data) return { input: undefined, pending: isPending && task !== '' && !error, error };
  const file = Math.max(1, Math.floor(Number(search.file)) || 1);
  const media = mediaOf(data, filesOf(data)[file - 1]);
  return { input: media && { task, file, media }, pending: false, error };
}
