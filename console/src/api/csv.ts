// Answers that are saved as files of lines.
import { useMutation } from '@tanstack/react-query';
import { send, type Query } from './client';

/** Saves an answer of the API as a CSV file. Its data says whether lines are left that the file has not. */
export function useSaveCSV(path: string, query: Query, name: string) {
  return useMutation({ mutationFn: () => save(path, query, `${name}.csv`) });
}

async function save(path: string, query: Query, name: string): Promise<boolean> {
  const response = await send('GET', path, { query, headers: { Accept: 'text/csv' } });
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // The browser has taken the file by then, if it takes it at all.
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000);
  return response.headers.has('Link');
}
