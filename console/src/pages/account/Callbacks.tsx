// The newest tasks with a callback, filtered by its state.
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { Task, TaskList } from '../../api/types';
import { callbackStates, callbackTone, type CallbackState } from '../../task/callback';
import { Ago, Badge, Button, Empty, Loading, Problem, Select, capitalised } from '../../ui';
import { words } from '../../words';
import css from './account.module.css';

const w = words.account;
const states = words.task.page.callbackState;

const length = 50;

/** The newest tasks whose callback is in one of these states. The API lists one state at a time. */
async function readCallbacks(of: readonly CallbackState[], signal: AbortSignal): Promise<Task[]> {
  const lists = await Promise.all(of.map((webhook) => call<TaskList>('GET', '/v1/tasks', { query: { webhook, limit: length }, signal })));
  // A callback that changed between two answers is in both of them.
  const tasks = new Map(lists.flatMap((list) => list.data.map((task) => [task.id, task])));
  return [...tasks.values()].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, length);
}

export function Callbacks({ maySend }: { maySend: boolean }) {
  const [state, setState] = useState<CallbackState | ''>('');
  const of = state ? [state] : callbackStates;
  const tasks = useQuery({
    queryKey: queryKeys.callbacks(state),
    queryFn: ({ signal }) => readCallbacks(of, signal),
    placeholderData: keepPreviousData,
    refetchInterval: (q) => (q.state.data?.some((task) => task.webhook?.state === 'pending') ? 5_000 : false),
  });
  const called = tasks.data ?? [];
  return (
    <section className="stack">
      <div className={css.callbackshead}>
        <div>
          <h2>{w.callbacks}</h2>
          <p className="soft">{w.callbacksHint(length)}</p>
        </div>
        <Select
          label={words.tasks.state}
          value={state}
          onChange={(e) => setState(e.target.value as CallbackState | '')}
          options={[{ value: '', label: words.tasks.any }, ...Object.entries(states).map(([value, label]) => ({ value, label }))]}
        />
      </div>
      {!tasks.data && <Problem error={tasks.error} />}
      {tasks.isPending && <Loading />}
      {tasks.data && called.length === 0 && <Empty title={w.noCallbacks}>{state === '' && <span>{w.noCallbacksHint}</span>}</Empty>}
      {called.length > 0 && (
        <ul className={css.callbacks}>
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
    <li className={`card ${css.callback}`}>
      <div className={css.callbackline}>
        <Badge tone={callbackTone(task)}>{states[state]}</Badge>
        <span className={css.what}>
          <Link to="/tasks/$id" params={{ id: task.id }} className="mono">
            {task.id}
          </Link>{' '}
          <span className="soft foreign">{task.model}</span>
        </span>
        <span className="soft">
          <Ago unix={task.completed ?? task.created} />
        </span>
        <span className={css.again}>
          <span role="status" className="soft">
            {sent && w.sent}
          </span>{' '}
          {/* A dropped callback cannot be sent: its address may not be called, or its task was cancelled. */}
          {maySend && (sent || state === 'delivered' || state === 'abandoned') && (
            <Button aria-disabled={send.isPending || sent} aria-label={w.sendAgainOf(task.id)} onClick={() => !send.isPending && !sent && send.mutate()}>
              {w.sendAgain}
            </Button>
          )}
        </span>
      </div>
      {task.webhook!.reason && <p className="soft foreign">{capitalised(task.webhook!.reason)}</p>}
      <Problem error={send.error} />
    </li>
  );
}
