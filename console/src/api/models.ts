// The models that the session's key may use. Several pages list them.
import { queryOptions } from '@tanstack/react-query';
import { call } from './client';
import { queryKeys } from './queryKeys';
import type { Model } from './types';

export const modelsQuery = queryOptions({
  queryKey: queryKeys.models,
  queryFn: () => call<{ data: Model[] }>('GET', '/v1/models', { query: { expand: 'category,pricing' } }),
  staleTime: 5 * 60_000,
});
