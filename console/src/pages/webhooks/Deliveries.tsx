// The deliveries to an endpoint: each event with its last attempt, and buttons that send events again.
import { keepPreviousData, useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { List } from '../../api/types';
import { Badge, Button, Empty, Facts, Loading, Problem, Select, formatTime } from '../../ui';
import { words } from '../../words';
import { deliveryTones, nextLook, path, pretty, type Delivery, type Endpoint } from './endpoints';
import css from './webhooks.module.css';

const w = words.webhooks;

type State = Delivery['state'];

export function Deliveries({ endpoint }: { endpoint: Endpoint }) {
  const client = useQueryClient();
  const at = `${path}/${endpoint.id}/deliveries`;
  const [state, setState] = useState<State | ''>('');
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const list = useInfiniteQuery({
    queryKey: queryKeys.endpointDeliveries(endpoint.id, state),
    queryFn: ({ pageParam, signal }) => call<List<Delivery>>('GET', at, { query: { state, limit: 50, after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => (page.has_more ? page.data.at(-1)?.id : undefined),
    placeholderData: keepPreviousData,
    refetchInterval: (q) => nextLook(q.state.data?.pages.flatMap((page) => page.data) ?? [], Date.now() / 1000),
  });
  // New deliveries may have changed the health of the endpoint.
  useEffect(() => {
    if (list.dataUpdatedAt) void client.invalidateQueries({ queryKey: queryKeys.endpoint(endpoint.id), exact: true });
  }, [client, endpoint.id, list.dataUpdatedAt]);
  const again = useMutation({
    // One after the other: the API limits how many may be sent at once.
    mutationFn: async (ids: readonly string[]) => {
      for (const id of ids) {
        await call<Delivery>('POST', `${at}/${id}/redeliver`);
        setChosen((before) => new Set([...before].filter((one) => one !== id)));
      }
    },
    onSettled: () => client.invalidateQueries({ queryKey: queryKeys.endpoint(endpoint.id) }),
  });
  const deliveries = list.data?.pages.flatMap((page) => page.data) ?? [];
  const maySend = (d: Delivery) => endpoint.enabled && d.state !== 'pending';
  const sendable = deliveries.filter((d) => chosen.has(d.id) && maySend(d)).map((d) => d.id);
  const choose = (id: string, on: boolean) => setChosen((before) => new Set(on ? [...before, id] : [...before].filter((one) => one !== id)));
  return (
    <section className="stack">
      <div className={css.deliverieshead}>
        <h2>{w.deliveries}</h2>
        <Select
          label={words.tasks.state}
          value={state}
          onChange={(e) => setState(e.target.value as State | '')}
          options={[{ value: '', label: words.tasks.any }, ...Object.entries(w.deliveryState).map(([value, label]) => ({ value, label }))]}
        />
      </div>
      <div className="row">
        <Button disabled={sendable.length === 0 || again.isPending} onClick={() => again.mutate(sendable)}>
          {w.sendChosen(sendable.length)}
        </Button>
        <span role="status" className="soft">
          {again.isSuccess && words.account.sent}
        </span>
      </div>
      <Problem error={again.error} />
      {!list.data && <Problem error={list.error} />}
      {list.isPending && <Loading />}
      {list.data && deliveries.length === 0 && <Empty title={w.noDeliveries}>{w.noDeliveriesHint}</Empty>}
      {deliveries.length > 0 && (
        <ul className={css.deliveries}>
          {deliveries.map((d) => (
            <li key={d.id} className={`card ${css.delivery}`}>
              <input type="checkbox" aria-label={w.choose(d.type, d.id)} disabled={!maySend(d)} checked={chosen.has(d.id)} onChange={(e) => choose(d.id, e.target.checked)} />
              <details>
                <summary>
                  <Badge tone={deliveryTones[d.state]}>{w.deliveryState[d.state]}</Badge> <span className="mono">{d.type}</span> <span className="soft">{formatTime(d.at)}</span>
                </summary>
                <Attempt of={d} url={endpoint.url} />
              </details>
              {maySend(d) && (
                <Button variant="quiet" disabled={again.isPending} aria-label={w.sendAgainOf(d.type, d.id)} onClick={() => again.mutate([d.id])}>
                  {words.account.sendAgain}
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
      {list.hasNextPage && (
        <div className="row">
          <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {words.shell.more}
          </Button>
        </div>
      )}
    </section>
  );
}

/** The details of a delivery. */
function Attempt({ of, url }: { of: Delivery; url: string }) {
  const last = of.last_attempt;
  return (
    <div className={`stack ${css.attempt}`}>
      <Facts
        rows={[
          [w.event, <span className="mono">{of.id}</span>],
          of.task !== null && [
            w.task,
            <Link to="/tasks/$id" params={{ id: of.task }} className="mono">
              {of.task}
            </Link>,
          ],
          [w.url, <span className="foreign">{url}</span>],
          [w.attempts, of.attempts],
          of.next_attempt_at !== null && [w.next, formatTime(of.next_attempt_at)],
          last && [w.lastAttempt, formatTime(last.at)],
          last && [w.answered, <span className="foreign">{last.error ?? w.answer(last.status ?? 0, last.duration_ms)}</span>],
        ]}
      />
      {last && (
        <div>
          <h3>{w.headers}</h3>
          <pre tabIndex={0} className="foreign">
            {Object.entries(last.headers).map(([name, value]) => `${name}: ${value}\n`)}
          </pre>
        </div>
      )}
      {of.body !== null && (
        <div>
          <h3>{w.body}</h3>
          <pre tabIndex={0} className="foreign">
            {pretty(of.body)}
          </pre>
        </div>
      )}
      {last?.answer && (
        <div>
          <h3>{w.answerBody}</h3>
          <pre tabIndex={0} className="foreign">
            {last.answer}
          </pre>
        </div>
      )}
    </div>
  );
}
