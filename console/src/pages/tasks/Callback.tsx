// The callback of a task: the attempts to deliver it, and a button that sends it again.
import { useMutation, useQuery } from '@tanstack/react-query';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { Delivery, List, Task } from '../../api/types';
import { mayUse, queryClient, useSession } from '../../session';
import { callbackTone, wasTaken } from '../../task/callback';
import { Foreign } from '../../task/Foreign';
import { isOpen, putTask } from '../../task/useTask';
import { Badge, Button, Problem, Right, Table, Time, capitalised, zoneName } from '../../ui';
import { words } from '../../words';
import css from './tasks.module.css';

const w = words.task.page;

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
          <Badge tone={callbackTone(task)}>{w.callbackState[webhook.state]}</Badge>
        </span>
      </div>
      {webhook.reason && <Foreign text={capitalised(webhook.reason)} />}
      {deliveries && deliveries.data.length > 0 && (
        <Table label={w.attempts} cards head={[w.attempt, words.ui.inZone(w.at, zoneName()), w.answer, <Right>{w.duration}</Right>, words.ui.inZone(w.next, zoneName())]}>
          {deliveries.data.toReversed().map((d) => (
            <tr key={`${d.round}.${d.attempt}`}>
              <th scope="row" data-label={w.attempt}>
                {d.round === 1 ? d.attempt : `${d.round}.${d.attempt}`}
              </th>
              <td className="nowrap">
                <Time unix={d.at} seconds />
              </td>
              <td>
                {d.status !== null && <Badge tone={wasTaken(d) ? 'good' : 'bad'}>{d.status}</Badge>}
                {d.error !== null && <Foreign text={d.error} limit={200} />}
              </td>
              <td className="number" data-label={w.duration}>
                {w.milliseconds(d.duration_ms)}
              </td>
              <td className="nowrap" data-label={words.ui.inZone(w.next, zoneName())}>
                <Time unix={d.next_attempt_at} seconds />
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
