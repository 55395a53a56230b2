import { pathOf, send, type Query } from '../../api/client';

/** Saves an answer as a file of comma separated values. */
export async function saveAs(path: string, name: string, query: Query = {}): Promise<void> {
  const response = await send('GET', pathOf(path, query), { headers: { Accept: 'text/csv' } });
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
