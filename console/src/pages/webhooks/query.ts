import { queryOptions } from '@tanstack/react-query';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { List } from '../../api/types';
import { path, type Endpoint } from './endpoints';

/** All endpoints of the account. An account has at most ten. */
export const endpointsQuery = queryOptions({
  queryKey: queryKeys.endpoints,
  queryFn: ({ signal }) => call<List<Endpoint>>('GET', path, { query: { limit: 100 }, signal }),
});
