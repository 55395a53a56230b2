// Sends a request. An answer that is lost on its way is asked for again with the same
// Idempotency-Key, so nothing is made or charged twice.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { ApiError, AwayError, call, newKey, send } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import { rememberRequest, type Request } from '../../requests';
import type { Spoken } from './Speech';

interface Acknowledgement {
  data: { task_id: string }[];
}
interface Sent {
  request: Request;
  key: string;
}
export type Outcome = { task: string } | { spoken: Spoken };

const isLost = (error: unknown) => error instanceof AwayError || (error instanceof ApiError && error.status >= 502);

export function useRun(onDone: (outcome: Outcome, request: Request) => void) {
  const queries = useQueryClient();
  const lost = useRef<{ text: string; key: string }>(undefined);
  const repeatable = useRef(true);
  const run = useMutation({
    mutationFn: async ({ request, key }: Sent): Promise<Outcome> => {
      const { endpoint, body } = request;
      if (endpoint === '/v1/audio/speech') {
        const answer = await send('POST', endpoint, { body });
        return { spoken: { blob: await answer.blob(), format: String(body.response_format ?? 'mp3') } };
      }
      const { data } = await call<Acknowledgement>('POST', endpoint, { body, headers: { 'Idempotency-Key': key } });
      return { task: data[0]!.task_id };
    },
    // Speech is no submit: a repeat would be charged again.
    retry: (count, error) => isLost(error) && repeatable.current && count < 60,
    retryDelay: (count) => Math.min(1000 * 2 ** count, 5000),
    onSuccess: (outcome, { request }) => {
      lost.current = undefined;
      if ('task' in outcome) rememberRequest({ ...request, task: outcome.task, at: Math.floor(Date.now() / 1000) });
      void queries.invalidateQueries({ queryKey: queryKeys.balances });
      void queries.invalidateQueries({ queryKey: queryKeys.tasks });
      onDone(outcome, request);
    },
    onError: (error, { request, key }) => {
      lost.current = isLost(error) ? { text: JSON.stringify(request), key } : undefined;
    },
  });
  return {
    run: (request: Request) => {
      const text = JSON.stringify(request);
      repeatable.current = request.endpoint !== '/v1/audio/speech';
      run.mutate({ request, key: lost.current?.text === text ? lost.current.key : newKey() });
    },
    reset: run.reset,
    pending: run.isPending,
    repeating: run.isPending && run.failureCount > 0,
    error: run.error,
  };
}
