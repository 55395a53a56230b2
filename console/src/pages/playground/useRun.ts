// Sends a request. An answer that is lost on its way is asked for again with the same
// Idempotency-Key, so nothing is made or charged twice.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { call, send } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import { untilAnswered, useSubmitKey } from '../../api/submit';
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

export function useRun(onDone: (outcome: Outcome, request: Request) => void) {
  const queries = useQueryClient();
  const keys = useSubmitKey();
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
    ...untilAnswered,
    retry: (count, error) => repeatable.current && untilAnswered.retry(count, error),
    onSuccess: (outcome, { request }) => {
      if ('task' in outcome) rememberRequest({ ...request, task: outcome.task, at: Math.floor(Date.now() / 1000) });
      void queries.invalidateQueries({ queryKey: queryKeys.balances });
      void queries.invalidateQueries({ queryKey: queryKeys.tasks });
      onDone(outcome, request);
    },
    onSettled: (_, error) => keys.settle(error),
  });
  return {
    run: (request: Request) => {
      repeatable.current = request.endpoint !== '/v1/audio/speech';
      run.mutate({ request, key: keys.of(request) });
    },
    reset: run.reset,
    pending: run.isPending,
    repeating: run.isPending && run.failureCount > 0,
    error: run.error,
  };
}
