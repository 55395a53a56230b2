// Queries that several pages for operators share.
import { queryOptions } from '@tanstack/react-query';
import type { Channel, Readiness, TaskPage } from '../../api/admin';
import { ApiError, call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { List } from '../../api/types';
import type { Tone } from '../../ui';

export const channelsQuery = queryOptions({
  queryKey: queryKeys.channels,
  queryFn: ({ signal }) => call<List<Channel>>('GET', '/admin/v1/channels', { query: { limit: 100 }, signal }),
  refetchInterval: 5_000,
});

export function toneOf(channel: Channel): Tone {
  if (channel.state === 'up') return 'good';
  if (channel.state === 'disabled') return 'neutral';
  return channel.state === 'probing' ? 'warn' : 'bad'; // also failing, although its breaker is closed
}

/** The names of the channels that an operator may choose for a new attempt. */
export function usable(channels: readonly Channel[] | undefined): string[] {
  return (channels ?? []).filter((c) => c.enabled && c.provider !== '').map((c) => c.name);
}

/** The number of stuck tasks of all accounts. The pages that show it choose whether it is polled. */
export const stuckCountQuery = queryOptions({
  queryKey: queryKeys.stuckCount,
  queryFn: async ({ signal }) => (await call<TaskPage>('GET', '/admin/v1/tasks', { query: { stuck: true, total: true, limit: 1 }, signal })).total ?? 0,
  staleTime: 10_000,
});

export const readyQuery = queryOptions({
  queryKey: queryKeys.ready,
  queryFn: async ({ signal }): Promise<Readiness> => {
    try {
      return await call<Readiness>('GET', '/readyz', { signal });
    } catch (error) {
      // 503 is an answer too: the service says that it is not ready.
      if (error instanceof ApiError && error.status === 503) return { status: 'unavailable', error: { message: error.message } };
      throw error;
    }
  },
  refetchInterval: 10_000,
});
