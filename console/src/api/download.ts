import { send, type Query } from './client';

/** Saves an answer as a file of lines. Reports whether lines are left that the file has not. */
export async function download(path: string, query: Query, name: string): Promise<boolean> {
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
