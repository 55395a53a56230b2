// Queries that several pages for operators share.
import { queryOptions } from '@tanstack/react-query';
import type { Channel, Readiness } from '../../api/admin';
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
