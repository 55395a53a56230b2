// Saves answers of the API as CSV files.
import { useMutation } from '@tanstack/react-query';
import { send, type Query } from './client';

/** Saves an answer as a CSV file. The data of the mutation says whether the file was cut short. */
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
  // The browser has long started the download by then.
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000);
  return response.headers.has('Link');
}
