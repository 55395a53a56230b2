import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import { call, faults, type Query } from '../../api/client';
import { useSaveCSV } from '../../api/csv';
import { queryKeys } from '../../api/queryKeys';
import type { UsageItem } from '../../api/types';
import { useSession } from '../../session';
import { Amount, Button, Empty, Loading, PageHead, Problem, Select, usePageTitle } from '../../ui';
import { words } from '../../words';
import { Chart } from './Chart';
import { Period } from './Period';
import { dateOf, rangeOf, startOf } from './range';
import { Statement } from './Statement';
import { seriesOf, sumsBy, total, type By } from './sums';
import { tasksOf } from './tasks';
import { DaysTable, SumsTable } from './Tables';
import css from './usage.module.css';

const w = words.usage;
const path = '/v1/usage';

export function Usage() {
  usePageTitle(w.title);
  const session = useSession();
  const search = useSearch({ from: '/frame/usage' });
  const navigate = useNavigate({ from: '/usage' });
  const by: By = search.by === 'day' || search.by === 'key' ? search.by : 'model';
  const today = dateOf(Date.now() / 1000);
  const range = useMemo(() => rangeOf(search, startOf(today)), [search, today]);
  const change = (next: typeof search) => void navigate({ search: (now) => ({ ...now, ...next }), replace: true });

  const query = { ...range.query, model: search.model, key: search.key, group_by: by === 'day' ? 'day' : `day,${by}` };
  const usage = useQuery({
    queryKey: queryKeys.usage(query),
    queryFn: ({ signal }) => call<{ data: UsageItem[] }>('GET', path, { query, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: (q) => (q.state.data?.data.some((item) => item.tasks.pending + item.tasks.processing > 0) ? 60_000 : false),
  });
  const { models, keys } = useUsed(range.query);
  const nameOf = (name: string) => (by === 'key' ? (keys.get(name) ?? name) : name);

  const rows = usage.data?.data;
  const series = useMemo(() => seriesOf(rows ?? [], by, range.days.map(dateOf), w.others), [rows, by, range]);
  const save = useSaveCSV(path, query, `usage-${range.first}-${range.last}`);
  const fault = faults(usage.error, range.preset === 'own' ? ['from', 'to', 'model', 'key'] : ['model', 'key']);
  const sum = total(rows ?? []);
  const { pending, processing, completed, failed, cancelled } = sum.tasks;
  return (
    <div className={css.usagepage}>
      <PageHead title={w.title} lead={w.lead} />
      <div className={css.usagecontrols}>
        <Period range={range} fault={fault.at} onChange={change} />
        <Select
          label={w.by}
          value={by}
          options={[
            { value: 'model', label: w.byModel },
            { value: 'key', label: w.byKey },
            { value: 'day', label: w.byDay },
          ]}
          onChange={(e) => change({ by: e.target.value })}
        />
        <Choice label={w.model} error={fault.at('model')} value={search.model} of={models} onChange={(model) => change({ model })} />
        <Choice label={w.key} error={fault.at('key')} value={search.key} of={keys} onChange={(key) => change({ key })} />
        <Button disabled={save.isPending} onClick={() => save.mutate()}>
          {w.download}
        </Button>
      </div>
      <div className="stack">
        <Problem error={fault.elsewhere ?? save.error} />
        {usage.isPending && <Loading />}
        {rows && (
          <>
            <dl className={css.figures} aria-live="polite">
              <div>
                <dt>{w.cost}</dt>
                <dd>
                  <Amount value={sum.cost} currency={session.currency} />
                </dd>
              </div>
              <Figure name={w.completed} value={completed} />
              <Figure name={w.failed} value={failed} />
              <Figure name={w.cancelled} value={cancelled} />
              <Figure name={w.open} value={pending + processing} />
            </dl>
            {rows.length === 0 ? (
              <Empty title={w.nothing}>{w.nothingHint}</Empty>
            ) : (
              <>
                <Chart
                  label={w.chart(w.names[by], range.first, range.last)}
                  days={range.days}
                  series={series}
                  nameOf={nameOf}
                  currency={session.currency}
                  onPick={(day, name) => void navigate({ to: '/tasks', search: tasksOf(search, dateOf(day), dateOf(day), by === 'day' || name === w.others ? undefined : { [by]: name }) })}
                />
                <SumsTable
                  by={by}
                  sums={sumsBy(rows, by)}
                  total={sum}
                  nameOf={nameOf}
                  series={series}
                  currency={session.currency}
                  tasks={(name) => (by === 'day' ? tasksOf(search, name, name) : tasksOf(search, range.first, range.last, { [by]: name }))}
                />
                {by !== 'day' && <DaysTable days={range.days.map(dateOf)} series={series} nameOf={nameOf} currency={session.currency} tasks={(day) => tasksOf(search, day, day)} />}
              </>
            )}
          </>
        )}
        <Statement path="/v1/account/statement" name="statement" note={w.statementFilters} range={range} currency={session.currency} taskPage="/tasks/$id" />
      </div>
    </div>
  );
}

/** The models and keys that were used in the period, keys with their names. */
function useUsed(range: Query) {
  const query = { ...range, group_by: 'model,key' };
  const { data } = useQuery({
    queryKey: queryKeys.usage(query),
    queryFn: ({ signal }) => call<{ data: UsageItem[] }>('GET', path, { query, signal }),
    placeholderData: keepPreviousData,
  });
  return useMemo(() => {
    const rows = data?.data ?? [];
    return {
      models: new Map(rows.map(({ model = '' }) => [model, model])),
      keys: new Map(rows.map(({ key = '', key_name: name }) => [key, name || key])),
    };
  }, [data]);
}

/** Chooses one of the used models or keys, or all. A choice in the URL is offered even if it was not used. */
function Choice({ label, error, value = '', of, onChange }: { label: string; error: string | null; value: string | undefined; of: ReadonlyMap<string, string>; onChange: (value: string | undefined) => void }) {
  const known = [...of].map(([id, name]) => ({ value: id, label: name.slice(0, 80) })).sort((a, b) => a.label.localeCompare(b.label));
  const options = [{ value: '', label: w.all }, ...(value && !of.has(value) ? [value] : []), ...known];
  return <Select label={label} error={error} value={value} options={options} onChange={(e) => onChange(e.target.value || undefined)} />;
}

function Figure({ name, value }: { name: string; value: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value.toLocaleString('en-GB')}</dd>
    </div>
  );
}
