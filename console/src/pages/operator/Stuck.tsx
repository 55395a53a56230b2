// The first page of an operator: the stuck tasks, with the reason, the next step and the commands of each. With
// another filter it lists all tasks.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { OperatorTask, TaskPage } from '../../api/admin';
import { call, faults, type Query } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import { Money, StateBadge } from '../../task/State';
import { isOpen } from '../../task/useTask';
import { Ago, Badge, Button, Empty, Field, Loading, PageHead, Problem, Select, Table, Typed, usePageTitle } from '../../ui';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';
import { dayOf, queryOf } from '../tasks/Filters';
import { Bulk } from './Bulk';
import { Levers, OrderDialog, type Order } from './Levers';
import { AccountLink, Lasting, Soon, Why, readable, useSaid } from './parts';
import { channelsQuery } from './queries';
import { Strip } from './Strip';
import css from './operator.module.css';

const w = operatorWords;

const names = ['q', 'status', 'type', 'model', 'account', 'channel', 'webhook', 'reference', 'source', 'created_after', 'created_before'] as const;
type Filter = (typeof names)[number];
type Search = Partial<Record<Filter, string>>;

export function Stuck() {
  const search = useSearch({ from: '/frame/operator/' });
  const stuck = search.stuck !== 'all';
  const title = stuck ? w.stuckTitle : w.title;
  usePageTitle(title);
  const filtered = names.some((n) => search[n] !== undefined);
  const filter: Query = { ...queryOf(search), q: search.q, account: search.account, channel: search.channel, webhook: search.webhook, stuck: stuck || undefined };
  // Stuck tasks are few, so each load of the list counts them. All tasks may be many, so they are counted once, and
  // only if a filter selects some.
  const query = { ...filter, after: search.after, limit: 50, total: stuck || undefined };
  const { data, error } = useQuery({
    queryKey: queryKeys.adminTaskList(query),
    queryFn: ({ signal }) => call<TaskPage>('GET', '/admin/v1/tasks', { query, signal }),
    placeholderData: keepPreviousData,
    // A task may get stuck at any time, so the list of stuck tasks is polled. A list of ended tasks does not change.
    refetchInterval: (q) => (stuck || q.state.data?.data.some(isOpen) ? 5_000 : false),
  });
  const count = { ...filter, limit: 1, total: true };
  const counted = useQuery({
    queryKey: queryKeys.adminTaskList(count),
    queryFn: ({ signal }) => call<TaskPage>('GET', '/admin/v1/tasks', { query: count, signal }),
    enabled: !stuck && filtered,
    staleTime: 60_000,
  });
  const total = stuck ? data?.total : filtered ? counted.data?.total : undefined;
  const [order, setOrder] = useState<Order | null>(null);
  const [said, say] = useSaid();
  const fault = faults(error, names);
  return (
    <>
      <PageHead title={title} lead={stuck ? w.lead : w.allLead}>
        <Bulk filter={filter} />
      </PageHead>
      <div className="stack">
        <Strip />
        <Filters search={search} stuck={stuck} filtered={filtered} fault={fault.at} />
        <Problem error={fault.elsewhere} />
        {said}
        {total !== undefined && <Total n={total} stuck={stuck} reasons={data?.reasons} />}
        {!data && !error && <Loading />}
        {data && data.data.length > 0 && <Rows tasks={data.data} title={title} onPick={setOrder} />}
        {data?.data.length === 0 && <Nothing stuck={stuck} filtered={filtered} />}
        {data && (search.after || data.has_more) && (
          <nav className="row" aria-label={w.pages}>
            {search.after && (
              <Link to="/operator" search={(s) => ({ ...s, after: undefined })} className="button">
                {words.shell.newest}
              </Link>
            )}
            {data.has_more && (
              <Link to="/operator" search={(s) => ({ ...s, after: data.data.at(-1)!.id })} className="button">
                {words.shell.more}
              </Link>
            )}
          </nav>
        )}
      </div>
      <OrderDialog order={order} onClose={() => setOrder(null)} onDone={say} />
    </>
  );
}

function Filters({ search, stuck, filtered, fault }: { search: Search; stuck: boolean; filtered: boolean; fault: (name: Filter) => string | null }) {
  const navigate = useNavigate({ from: '/operator' });
  const { data: channels } = useQuery(channelsQuery);
  const set = (name: Filter | 'stuck', value: string) => void navigate({ search: (s) => ({ ...s, [name]: value || undefined, after: undefined }), replace: true });
  const any = { value: '', label: w.any };
  const choose = (name: Filter, label: string, options: readonly (string | { value: string; label: string })[]) => (
    <Select label={label} error={fault(name)} value={search[name] ?? ''} onChange={(e) => set(name, e.target.value)} options={[any, ...options]} />
  );
  const worded = (list: Record<string, string>) => Object.entries(list).map(([value, label]) => ({ value, label }));
  const typed = (name: Filter & keyof typeof w.field) => <Typed label={w.field[name]} value={search[name] ?? ''} error={fault(name)} onChange={(value) => set(name, value.trim())} />;
  const known = channels?.data.map((c) => c.name) ?? [];
  return (
    <form className={css.opfilters} aria-label={w.filters} onSubmit={(e) => e.preventDefault()}>
      <div className={css.opsearch}>
        <Typed label={w.search} placeholder={w.searchHint} value={search.q ?? ''} error={fault('q')} onChange={(value) => set('q', value.trim())} />
      </div>
      <Select label={w.show} value={stuck ? '' : 'all'} onChange={(e) => set('stuck', e.target.value)} options={[{ value: '', label: w.onlyStuck }, { value: 'all', label: w.everything }]} />
      {choose('status', w.state, worded(words.task.status))}
      {choose('type', w.type, worded(words.tasks.types))}
      {choose('channel', w.field.channel, search.channel && !known.includes(search.channel) ? [search.channel, ...known] : known)}
      {choose('webhook', w.callback, worded(words.task.page.callbackState))}
      {typed('model')}
      {typed('account')}
      {typed('reference')}
      {typed('source')}
      <Field label={words.tasks.from} error={fault('created_after')} type="date" value={dayOf(search.created_after)} onChange={(e) => set('created_after', e.target.value)} />
      <Field label={words.tasks.to} error={fault('created_before')} type="date" value={dayOf(search.created_before)} onChange={(e) => set('created_before', e.target.value)} />
      {filtered && (
        <Button variant="quiet" onClick={() => void navigate({ search: stuck ? {} : { stuck: 'all' } })}>
          {words.tasks.reset}
        </Button>
      )}
    </form>
  );
}

/** The number of tasks on all pages. For stuck tasks also the number for each reason, since many tasks often have one
 * cause. */
function Total({ n, stuck, reasons = {} }: { n: number; stuck: boolean; reasons: Record<string, number> | undefined }) {
  return (
    <p className="row" role="status">
      {n > 0 && <strong>{stuck ? w.countStuck(n) : w.count(n)}</strong>}
      {Object.entries(reasons)
        .sort((a, b) => b[1] - a[1])
        .map(([reason, times]) => (
          <Badge key={reason} tone="warn">
            {w.park[reason] ?? reason}: {times.toLocaleString('en-GB')}
          </Badge>
        ))}
    </p>
  );
}

function Nothing({ stuck, filtered }: { stuck: boolean; filtered: boolean }) {
  if (filtered) return <Empty title={stuck ? w.noStuckMatch : w.nothing} />;
  if (!stuck) return <Empty title={words.tasks.none} />;
  return (
    <Empty title={w.nothingStuck}>
      <p>{w.nothingStuckHint}</p>
      <Link to="/operator" search={{ stuck: 'all' }}>
        {w.showAll}
      </Link>
    </Empty>
  );
}

function Rows({ tasks, title, onPick }: { tasks: OperatorTask[]; title: string; onPick: (order: Order) => void }) {
  return (
    <div className={css.oprows}>
      <Table cards label={title} head={[w.task, w.accountAndChannel, w.stateAndMoney, w.why, w.then, w.levers]}>
        {tasks.map((task) => (
          <tr key={task.id}>
            <th scope="row">
              <Link to="/operator/tasks/$id" params={{ id: task.id }} className="mono nowrap">
                {task.id}
              </Link>
              <p className="soft foreign">
                {task.model.slice(0, 80)} · <Ago unix={task.created} />
              </p>
              {task.reference && (
                <p className={`soft foreign ${css.clipped}`} dir="auto" title={task.reference}>
                  {task.reference}
                </p>
              )}
            </th>
            <td>
              <AccountLink id={task.account} name={task.account_name} />
              {task.channel && <p className="mono soft foreign">{task.channel}</p>}
            </td>
            <td>
              <StateBadge task={task} />
              <p className="soft nowrap">
                <Money task={task} />
              </p>
            </td>
            <td className={css.wide}>
              {task.stuck ? (
                <>
                  <Why stuck={task.stuck} />
                  {task.stuck.since !== null && (
                    <p className="soft">
                      {w.stuckFor} <Lasting unix={task.stuck.since} />
                    </p>
                  )}
                </>
              ) : (
                (task.waits_for?.step ?? <span className="mono foreign">{task.error?.code ?? words.ui.none}</span>)
              )}
            </td>
            <td className={css.wide}>
              {task.waits_for ? (
                <>
                  {task.waits_for.until !== null && (
                    <strong>
                      <Soon unix={task.waits_for.until} />:{' '}
                    </strong>
                  )}
                  <span>{readable(task.waits_for.then)}</span>
                </>
              ) : (
                words.ui.none
              )}
            </td>
            <td>
              <Levers id={task.id} actions={task.stuck?.actions ?? task.waits_for?.actions ?? []} listed onPick={onPick} />
            </td>
          </tr>
        ))}
      </Table>
    </div>
  );
}
