// Submits a request. If the answer is lost, the request is repeated with the same Idempotency-Key, so that it makes one
// task and one charge.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { call, send } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import { untilAnswered, useSubmitKey } from '../../api/submit';
import { keepSpeech, type Request, type Speech } from '../../requests';
import { base64 } from './Speech';

interface Acknowledgement {
  data: { task_id: string }[];
}
interface Sent {
  request: Request;
  key: string;
}
export type Outcome = { task: string } | { speech: Speech };

export function useRun(onDone: (outcome: Outcome) => void) {
  const queries = useQueryClient();
  const keys = useSubmitKey();
  const repeatable = useRef(true);
  const run = useMutation({
    mutationFn: async ({ request, key }: Sent): Promise<Outcome> => {
      const { endpoint, model, body } = request;
      if (endpoint === '/v1/audio/speech') {
        const answer = await send('POST', endpoint, { body });
        return { speech: { at: Date.now(), model, text: String(body.input), format: String(body.response_format ?? 'mp3'), data: await base64(await answer.blob()) } };
      }
      const { data } = await call<Acknowledgement>('POST', endpoint, { body, headers: { 'Idempotency-Key': key } });
      return { task: data[0]!.task_id };
    },
    // Speech has no Idempotency-Key: a repeat would be charged again.
    ...untilAnswered,
    retry: (count, error) => repeatable.current && untilAnswered.retry(count, error),
    onSuccess: (outcome) => {
      if ('speech' in outcome) keepSpeech(outcome.speech);
      void queries.invalidateQueries({ queryKey: queryKeys.balances });
      void queries.invalidateQueries({ queryKey: queryKeys.tasks });
      onDone(outcome);
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
