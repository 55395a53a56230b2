// One task, kept up to date. Its only copy is in the query cache: the first read, the stream of changes and the reads
// after the end all write there.
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { ApiError, call } from '../api/client';
import { queryKeys } from '../api/queryKeys';
import type { Art, Task } from '../api/types';
import { queryClient } from '../session';

export function isOpen(task: Task): boolean {
  return task.status === 'pending' || task.status === 'processing';
}

/** Shortens an ID for tables, to parts of its time and its random end. */
export function shortId(id: string): string {
  return `${id.slice(5, 13)}…${id.slice(-6)}`;
}

/** Whether an error says that the task does not exist, or no longer exists. */
export function isUnknown(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 400 || error.status === 404);
}

/** The files of a task of any type. */
export function filesOf(task: Task) {
  const result = task.result;
  return result?.videos ?? result?.images ?? result?.audios ?? [];
}

// Answers may arrive out of order. An older one never replaces a newer state.
function newer(known: Task | undefined, task: Task): Task {
  if (known && isOpen(task) && (!isOpen(known) || task.progress < known.progress)) return known;
  if (known && isOpen(known) && !isOpen(task)) void queryClient.invalidateQueries({ queryKey: queryKeys.balances }); // its hold has been released
  return task;
}

async function read(id: string, wait?: number, signal?: AbortSignal): Promise<Task> {
  const { data } = await call<{ data: Task }>('GET', `/v1/tasks/${encodeURIComponent(id)}`, { query: { wait }, signal });
  return newer(queryClient.getQueryData<Task>(queryKeys.task(id)), data);
}

/** Puts a task that a call returned into the cache. */
export function putTask(task: Task): void {
  queryClient.setQueryData<Task>(queryKeys.task(task.id), (known) => newer(known, task));
}

/** Reads the task again, for instance because one of its links has stopped working. */
export function refreshTask(id: string): void {
  void queryClient.invalidateQueries({ queryKey: queryKeys.task(id) });
}

const longestTimer = 2_000_000; // seconds: the most that a browser's timer can wait

// The delay before the task is read again, in milliseconds: a minute before its links expire, and every few seconds
// while its callback is pending. An open task is streamed. The slow reads beside the stream notice a connection that
// broke silently.
export function nextRead(task: Task | undefined): number | false {
  if (!task) return false;
  if (isOpen(task)) return 30_000;
  if (task.webhook?.state === 'pending') return 5_000;
  const now = Date.now() / 1000;
  const ends = filesOf(task).filter((f) => f.url.length > 0 && f.expires_at > now).map((f) => f.expires_at);
  if (ends.length === 0) return false;
  return Math.min(Math.max(Math.min(...ends) - now - 60, 10), longestTimer) * 1000;
}

export function taskQuery(id: string) {
  return queryOptions({
    queryKey: queryKeys.task(id),
    queryFn: ({ signal }) => read(id, undefined, signal),
    staleTime: 10_000,
    refetchInterval: (query) => nextRead(query.state.data),
  });
}

export function useTask(id: string) {
  const query = useQuery(taskQuery(id));
  const open = query.data !== undefined && isOpen(query.data);
  useEffect(() => (open ? follow(id) : undefined), [id, open]);
  return query;
}

/** An art task in the form of the art endpoints: only that form says that the task waits for the modal call. */
export function useArt(task: Task): Art | undefined {
  const { data } = useQuery({
    queryKey: queryKeys.artAt(task.id, task.status),
    queryFn: ({ signal }) => call<Art>('GET', `/v1/artgen/${encodeURIComponent(task.id)}`, { signal }),
    enabled: task.type === 'art',
    refetchInterval: isOpen(task) ? 2_000 : false,
  });
  return data;
}

// The streams in use, by task. All parts of the page that follow a task share one stream.
const followed = new Map<string, { users: number; end: AbortController }>();

/** Follows an open task until it ends, or until the returned function is called. */
function follow(id: string): () => void {
  let entry = followed.get(id);
  if (!entry) {
    entry = { users: 0, end: new AbortController() };
    followed.set(id, entry);
    void run(id, entry.end.signal);
  }
  const { end } = entry;
  entry.users++;
  return () => {
    const left = followed.get(id);
    if (left?.end !== end || --left.users > 0) return;
    end.abort();
    followed.delete(id);
  };
}

async function run(id: string, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    await whenVisible(signal);
    await stream(id, signal);
    const known = queryClient.getQueryData<Task>(queryKeys.task(id));
    if (signal.aborted || (known && !isOpen(known))) return;
    // The stream broke. A long poll returns the reason, or updates the task meanwhile.
    try {
      putTask(await read(id, 20, signal));
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) {
        refreshTask(id); // erased, or the session has ended: the query shows which
        return;
      }
      await pause(Math.min(1000 * 2 ** failures++, 10_000), signal);
    }
  }
}

/** Streams the task until the stream ends or breaks, or the page is hidden. A browser opens six connections to a server,
 * and hidden pages must not take them all. */
function stream(id: string, signal: AbortSignal): Promise<void> {
  if (signal.aborted || document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const source = new EventSource(`/v1/tasks/${encodeURIComponent(id)}/events`);
    const close = () => {
      source.close();
      document.removeEventListener('visibilitychange', onVisibility);
      signal.removeEventListener('abort', close);
      resolve();
    };
    const onVisibility = () => document.hidden && close();
    source.addEventListener('task', (event) => {
      const task = JSON.parse((event as MessageEvent<string>).data) as Task;
      putTask(task);
      if (!isOpen(task)) close();
    });
    source.onerror = close;
    document.addEventListener('visibilitychange', onVisibility);
    signal.addEventListener('abort', close);
  });
}

function whenVisible(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener('visibilitychange', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    document.addEventListener('visibilitychange', done);
    signal.addEventListener('abort', done);
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = window.setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (window.clearTimeout(timer), resolve()), { once: true });
  });
}
