// The attempts to deliver a task's callback, and another round of them.
import { useMutation, useQuery } from '@tanstack/react-query';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { Delivery, List, Task } from '../../api/types';
import { mayUse, queryClient, useSession } from '../../session';
import { wasTaken } from '../../task/deliveries';
import { Foreign } from '../../task/Foreign';
import { isOpen, putTask } from '../../task/useTask';
import { Badge, Button, Problem, Right, Table, Time, capitalised, type Tone } from '../../ui';
import { words } from '../../words';
import css from './tasks.module.css';

const w = words.task.page;

const tones: Record<NonNullable<Task['webhook']>['state'], Tone> = { pending: 'busy', delivered: 'good', dropped: 'neutral', abandoned: 'bad' };

export function useDeliveries(task: Task): List<Delivery> | undefined {
  const { data } = useQuery({
    queryKey: queryKeys.deliveries(task.id),
    queryFn: ({ signal }) => call<List<Delivery>>('GET', `/v1/tasks/${task.id}/deliveries`, { signal }),
    enabled: task.webhook !== undefined && !isOpen(task),
    refetchInterval: task.webhook?.state === 'pending' ? 3_000 : false,
  });
  return data;
}

export function Callback({ task }: { task: Task }) {
  const session = useSession();
  const deliveries = useDeliveries(task);
  const again = useMutation({
    mutationFn: () => call<{ data: Task }>('POST', `/v1/tasks/${task.id}/redeliver`),
    onSuccess: ({ data }) => {
      putTask(data);
      void queryClient.invalidateQueries({ queryKey: queryKeys.deliveries(task.id) });
    },
  });
  const webhook = task.webhook!;
  return (
    <section className={`card stack ${css.callback}`} aria-labelledby="callback">
      <div className="row">
        <h2 id="callback">{w.callback}</h2>
        <span role="status">
          <Badge tone={tones[webhook.state]}>{w.callbackState[webhook.state]}</Badge>
        </span>
      </div>
      {webhook.reason && <Foreign text={capitalised(webhook.reason)} />}
      {deliveries && deliveries.data.length > 0 && (
        <Table label={w.attempts} head={[w.attempt, w.at, w.answer, <Right>{w.duration}</Right>, w.next]}>
          {deliveries.data.toReversed().map((d) => (
            <tr key={`${d.round}.${d.attempt}`}>
              <th scope="row">{d.round === 1 ? d.attempt : `${d.round}.${d.attempt}`}</th>
              <td className="nowrap">
                <Time unix={d.at} />
              </td>
              <td>
                {d.status !== null && <Badge tone={wasTaken(d) ? 'good' : 'bad'}>{d.status}</Badge>}
                {d.error !== null && <Foreign text={d.error} limit={200} />}
              </td>
              <td className="number">{w.milliseconds(d.duration_ms)}</td>
              <td className="nowrap">
                <Time unix={d.next_attempt_at} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {deliveries?.has_more && <p className="hint">{w.older}</p>}
      {deliveries?.data.length === 0 && webhook.state !== 'dropped' && <p className="soft">{w.noAttempt}</p>}
      <Problem error={again.error} />
      {!isOpen(task) && webhook.state !== 'dropped' && mayUse(session, 'manage') && (
        <div className="row">
          <Button disabled={again.isPending || webhook.state === 'pending'} onClick={() => again.mutate()}>
            {again.isPending ? w.redelivering : w.redeliver}
          </Button>
          <span role="status" className="soft">
            {again.isSuccess && webhook.state === 'pending' ? w.redelivered : ''}
          </span>
        </div>
      )}
    </section>
  );
}
