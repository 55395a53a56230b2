// Calls the API with the session's cookie, and describes failures.
import { useSyncExternalStore } from 'react';

/** An error response of the API, with its message. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The field at fault, if the response names one. */
    readonly param: string | null,
    readonly requestId: string | null,
  ) {
    super(message);
  }
}

/** The API could not be reached or is not ready. A retry may help. */
export class AwayError extends Error {}

let csrf = '';
/** Remembers the CSRF token, which calls need that change something. */
export function rememberToken(token: string): void {
  csrf = token;
}

let onRefused: () => void = () => {};
/** Sets what happens when the API refuses a call that the page offered: the session may have ended, or its key may have
 * fewer rights than before. */
export function whenRefused(f: () => void): void {
  onRefused = f;
}

// Whether the last call found the API unreachable. The layout shows a note then.
let away = false;
const watchers = new Set<() => void>();
function setAway(now: boolean): void {
  if (now === away) return;
  away = now;
  watchers.forEach((w) => w());
}
export function useAway(): boolean {
  return useSyncExternalStore(
    (w) => (watchers.add(w), () => watchers.delete(w)),
    () => away,
  );
}

/** A new Idempotency-Key. crypto.randomUUID exists only in secure contexts, and the console also runs over plain http. */
export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');

export type Query = Record<string, string | number | boolean | undefined | null>;

interface Options {
  query?: Query;
  body?: unknown; // a value to send as JSON, or a FormData
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export function pathOf(path: string, query: Query = {}): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') q.set(name, String(value));
  }
  const text = q.toString();
  return text ? `${path}?${text}` : path;
}

/** Calls the API and returns the JSON of the response. Throws ApiError and AwayError. */
export async function call<T>(method: string, path: string, options: Options = {}): Promise<T> {
  const response = await send(method, path, options);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

/** Calls the API and returns the response, for files and headers. */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers };
  if (method !== 'GET') headers['X-CSRF-Token'] = csrf;
  let body: BodyInit | undefined;
  if (options.body instanceof FormData) body = options.body;
  else if (options.body !== undefined) {
    headers['Content-Type'] = 'application/json';
    body = JSON.stringify(options.body);
  }
  let response: Response;
  try {
    response = await fetch(pathOf(path, options.query), { method, headers, body, signal: options.signal, credentials: 'same-origin' });
  } catch (cause) {
    if (options.signal?.aborted) throw cause;
    setAway(true);
    throw new AwayError('unreachable', { cause });
  }
  setAway(response.status === 502 || response.status === 503 || response.status === 504);
  if (response.ok) return response;
  throw await failure(response, path);
}

async function failure(response: Response, path: string): Promise<ApiError> {
  const text = await response.text();
  let message = text.slice(0, 500) || response.statusText;
  let param: string | null = null;
  let requestId = response.headers.get('X-Request-Id');
  try {
    const error = (JSON.parse(text) as { error?: { message?: string; param?: string | null; request_id?: string } }).error;
    message = error?.message ?? message;
    param = error?.param ?? null;
    requestId = error?.request_id ?? requestId;
  } catch {
    // no JSON: a proxy answered instead of the API
  }
  if (path !== '/console/session' && (response.status === 401 || response.status === 403)) onRefused();
  return new ApiError(response.status, message, param, requestId);
}

/** Splits an error between the fields of a form and the rest of the page: a field gets the errors that name it, the page
 * all others. */
export function faults<F extends string>(error: unknown, shown: readonly F[]) {
  const param = error instanceof ApiError ? error.param : null;
  return {
    at: (field: F) => (param === field ? wordsOf(error) : null),
    elsewhere: shown.some((field) => field === param) ? null : error,
  };
}

/** The message of anything that a call throws. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
