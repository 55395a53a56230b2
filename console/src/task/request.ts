// What a task was asked for, as the service keeps it.
import { queryOptions } from '@tanstack/react-query';
import { call } from '../api/client';
import { queryKeys } from '../api/queryKeys';
import type { Task } from '../api/types';
import type { Request } from '../requests';
import { words } from '../words';

/** The request of a task; null once it is erased. Its endpoint is empty where the service did not keep that yet. */
export function requestQuery(id: string) {
  return queryOptions({
    queryKey: queryKeys.request(id),
    queryFn: async ({ signal }): Promise<Request | null> => {
      const { data } = await call<{ data: Task }>('GET', `/v1/tasks/${encodeURIComponent(id)}`, { query: { request: true }, signal });
      return data.request ? { endpoint: data.endpoint ?? '', model: data.model, body: data.request } : null;
    },
    staleTime: 10 * 60_000,
  });
}

/** The request as it can be sent again. Throws an error that says why it cannot. */
export function repeatable(request: Request | null): Request {
  if (!request) throw new Error(words.task.requestErased);
  if (!request.endpoint) throw new Error(words.task.requestInPart);
  return request;
}

// The texts by which people know a request, the most telling first: as lists show them.
const texts = ['prompt', 'gpt_description', 'sound_prompt', 'lyrics', 'title', 'input'];

/** The text that a request was made with, and the field that has it. */
export function promptOf(body: Record<string, unknown>): { field: string; text: string } | undefined {
  const field = texts.find((name) => typeof body[name] === 'string' && body[name] !== '');
  return field === undefined ? undefined : { field, text: String(body[field]) };
}

/** The name of a field as people read it: aspect_ratio is Aspect ratio. */
export function fieldTitle(name: string): string {
  const words = name.replaceAll('_', ' ').replace(/ urls?$/, '');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The settings of a request beside its text: names and values, in the order of the request. Its model stands elsewhere. */
export function settingsOf(body: Record<string, unknown>): [string, unknown][] {
  const prompt = promptOf(body)?.field;
  return Object.entries(body).filter(([name, value]) => name !== 'model' && name !== prompt && value !== null && value !== '');
}

/** The addresses of media within a value: itself, or the items of a list. */
export function addressesIn(value: unknown): string[] {
  const items = Array.isArray(value) ? value : [value];
  return items.flatMap((item) => {
    const url = typeof item === 'object' && item !== null ? (item as { url?: unknown }).url : item;
    return typeof url === 'string' && /^(https?:\/\/|\/v1\/tasks\/)/.test(url) ? [url] : [];
  });
}
