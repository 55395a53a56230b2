// The names of the account's keys. Lists of tasks have only their IDs.
import { queryOptions, useQuery } from '@tanstack/react-query';
import { mayUse, useSession } from '../session';
import { call } from './client';
import { queryKeys } from './queryKeys';
import type { Key, List } from './types';

const keyNamesQuery = queryOptions({
  queryKey: queryKeys.keyNames,
  queryFn: ({ signal }) => call<List<Key>>('GET', '/v1/keys', { query: { limit: 100 }, signal }),
  staleTime: 60_000,
});

/** The keys whose names are known: those of the account if the session may manage them, else its own key. */
export function useKeyNames() {
  const session = useSession();
  const { data } = useQuery({ ...keyNamesQuery, enabled: mayUse(session, 'manage') });
  const keys = data?.data ?? (session.key ? [session.key] : []);
  const names = new Map(keys.map((key) => [key.id, `${key.name} …${key.last_four}`]));
  return { names, nameOf: (id: string) => names.get(id) ?? `${id.slice(0, 8)}…${id.slice(-4)}` };
}
