// What several of the operators' pages ask.
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
  return channel.state === 'probing' ? 'warn' : 'bad'; // failing too, whose breaker is closed
}

/** The channels that may take new jobs, for those who choose one. */
export function usable(channels: readonly Channel[] | undefined): string[] {
  return (channels ?? []).filter((c) => c.enabled && c.provider !== '').map((c) => c.name);
}

export const readyQuery = queryOptions({
  queryKey: queryKeys.ready,
  queryFn: async ({ signal }): Promise<Readiness> => {
    try {
      return await call<Readiness>('GET', '/readyz', { signal });
    } catch (error) {
      // It answers, and says that it is not ready.
      if (error instanceof ApiError && error.status === 503) return { status: 'unavailable', error: { message: error.message } };
      throw error;
    }
  },
  refetchInterval: 10_000,
});
