// The request of a task, as the service keeps it.
import { queryOptions } from '@tanstack/react-query';
import { call } from '../api/client';
import { queryKeys } from '../api/queryKeys';
import type { Task } from '../api/types';
import type { Request } from '../requests';
import { words } from '../words';

/** The request of a task; null once it is erased. Its endpoint is empty for tasks from before the service kept endpoints. */
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

/** Returns a request that can be submitted again, or throws an error that says why it cannot. */
export function repeatable(request: Request | null): Request {
  if (!request) throw new Error(words.task.requestErased);
  if (!request.endpoint) throw new Error(words.task.requestInPart);
  return request;
}

// The fields that may hold the text of a request. The field that says most comes first, as in the API's lists.
const texts = ['prompt', 'gpt_description', 'sound_prompt', 'lyrics', 'title', 'input'];

/** The text of a request, and the field that holds it. */
export function promptOf(body: Record<string, unknown>): { field: string; text: string } | undefined {
  const field = texts.find((name) => typeof body[name] === 'string' && body[name] !== '');
  return field === undefined ? undefined : { field, text: String(body[field]) };
}

/** What a task does, for tasks without a prompt: the operation if it is known, else the type of the result. */
export function operationTitle({ type, action, endpoint }: Pick<Task, 'type' | 'action' | 'endpoint'>): string {
  // A button of an art task may be sent to the endpoint of another operation, so the action counts first.
  const name = action?.toLowerCase().replaceAll('_', '-') ?? endpoint?.split('/').at(-1) ?? '';
  return words.task.operation[name] ?? words.tasks.types[type];
}

/** The name of a field for people: aspect_ratio becomes "Aspect ratio". */
export function fieldTitle(name: string): string {
  const words = name.replaceAll('_', ' ').replace(/ urls?$/, '');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The title of a field in a request: image_urls[0] becomes "Image 1". */
export function pathTitle(path: string): string {
  const parts = path.split('.');
  if (parts.length > 1 && parts.at(-1) === 'url') parts.pop();
  const title = (part: string) => {
    const [, name = part, place] = /^(\w+)\[(\d+)\]$/.exec(part) ?? [];
    return place === undefined ? fieldTitle(name) : `${fieldTitle(name)} ${Number(place) + 1}`;
  };
  return parts.map(title).join(', ');
}

/** The settings of a request: names and values in its order, without its text and its model. */
export function settingsOf(body: Record<string, unknown>): [string, unknown][] {
  const prompt = promptOf(body)?.field;
  return Object.entries(body).filter(([name, value]) => name !== 'model' && name !== prompt && value !== null && value !== '');
}

/** The addresses of media in a value, which may be an address, an object with one, or a list of these. */
export function addressesIn(value: unknown): string[] {
  const items = Array.isArray(value) ? value : [value];
  return items.flatMap((item) => {
    const url = typeof item === 'object' && item !== null ? (item as { url?: unknown }).url : item;
    return typeof url === 'string' && /^(https?:\/\/|\/v1\/tasks\/)/.test(url) ? [url] : [];
  });
}
