// Run again and Vary: the same request as a new task, and a form filled in with it.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { call } from '../api/client';
import { queryKeys } from '../api/queryKeys';
import { untilAnswered, useSubmitKey } from '../api/submit';
import type { Task } from '../api/types';
import { mayUse, useSession } from '../session';
import { Button, Problem } from '../ui';
import { words } from '../words';
import { repeatable, requestQuery } from './request';

const w = words.task;

/** Submits the request of a task again, and opens the new task. */
function useRunAgain(task: Task) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const keys = useSubmitKey();
  return useMutation({
    mutationFn: async () => {
      const { endpoint, body } = repeatable(await queries.fetchQuery(requestQuery(task.id)));
      const { data } = await call<{ data: { task_id: string }[] }>('POST', endpoint, { body, headers: { 'Idempotency-Key': keys.of(body) } });
      return data[0]!.task_id;
    },
    ...untilAnswered,
    onSettled: (_, error) => keys.settle(error),
    onSuccess: (id) => {
      void queries.invalidateQueries({ queryKey: queryKeys.balances });
      void queries.invalidateQueries({ queryKey: queryKeys.tasks });
      return navigate({ to: '/tasks/$id', params: { id } });
    },
  });
}

/** Run again and Vary, for keys with the scope "generate". In a list, their accessible names include the task. */
export function Repeat({ task, listed = false }: { task: Task; listed?: boolean }) {
  const session = useSession();
  const again = useRunAgain(task);
  if (!mayUse(session, 'generate')) return null;
  const variant = listed ? 'quiet' : 'plain';
  return (
    <>
      <Button variant={variant} aria-disabled={again.isPending} aria-label={listed ? w.againOf(task.id) : undefined} title={w.againHint} onClick={() => again.isPending || again.mutate()}>
        {again.isPending ? w.runningAgain : w.again}
      </Button>
      <Link to="/playground" search={{ from: task.id }} className={`button ${variant}`} aria-label={listed ? w.varyOf(task.id) : undefined} title={w.varyHint}>
        {w.vary}
      </Link>
      <Problem error={again.error} />
    </>
  );
}
