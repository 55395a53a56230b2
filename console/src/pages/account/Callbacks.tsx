// The newest tasks that were given an address to call, and how their callbacks went.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { Task, TaskList } from '../../api/types';
import { Ago, Badge, Button, Empty, Loading, Problem, type Tone } from '../../ui';
import { words } from '../../words';

const w = words.account;
const states = words.task.page.callbackState;

type State = NonNullable<Task['webhook']>['state'];
const tones: Record<State, Tone> = { pending: 'busy', delivered: 'good', dropped: 'warn', abandoned: 'bad' };

export function Callbacks({ maySend }: { maySend: boolean }) {
  const tasks = useQuery({
    queryKey: queryKeys.callbacks,
    queryFn: ({ signal }) => call<TaskList>('GET', '/v1/tasks', { query: { limit: 100 }, signal }),
    refetchInterval: 5_000,
  });
  const called = tasks.data?.data.filter((task) => task.webhook) ?? [];
  return (
    <section>
      <h2>{w.callbacks}</h2>
      <p className="soft">{w.callbacksHint}</p>
      {!tasks.data && <Problem error={tasks.error} />}
      {tasks.isPending && <Loading />}
      {tasks.data && called.length === 0 && <Empty title={w.noCallbacks}>{w.noCallbacksHint}</Empty>}
      {called.length > 0 && (
        <ul className="callbacks">
          {called.map((task) => (
            <Callback key={task.id} task={task} maySend={maySend} />
          ))}
        </ul>
      )}
    </section>
  );
}

function Callback({ task, maySend }: { task: Task; maySend: boolean }) {
  const client = useQueryClient();
  const send = useMutation({
    mutationFn: () => call<unknown>('POST', `/v1/tasks/${task.id}/redeliver`),
    onSuccess: () => client.invalidateQueries({ queryKey: queryKeys.tasks }),
  });
  const state = task.webhook!.state;
  const sent = send.isSuccess && state === 'pending';
  return (
    <li className="card callback">
      <div className="callbackline">
        <Badge tone={tones[state]}>{states[state]}</Badge>
        <span className="what">
          <Link to="/tasks/$id" params={{ id: task.id }} className="mono">
            {task.id}
          </Link>{' '}
          <span className="soft foreign">{task.model}</span>
        </span>
        <span className="soft">
          <Ago unix={task.completed ?? task.created} />
        </span>
        <span className="again">
          <span role="status" className="soft">
            {sent && w.sent}
          </span>{' '}
          {/* One that was dropped had no address that may be called, or its task was cancelled. */}
          {maySend && (sent || state === 'delivered' || state === 'abandoned') && (
            <Button aria-disabled={send.isPending || sent} aria-label={w.sendAgainOf(task.id)} onClick={() => !send.isPending && !sent && send.mutate()}>
              {w.sendAgain}
            </Button>
          )}
        </span>
      </div>
      {task.webhook!.reason && <p className="soft foreign">{task.webhook!.reason}</p>}
      <Problem error={send.error} />
    </li>
  );
}
