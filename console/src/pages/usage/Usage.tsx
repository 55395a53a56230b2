import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import { ApiError, call } from '../../api/client';
import { download } from '../../api/download';
import { queryKeys } from '../../api/queryKeys';
import type { Key, List, UsageItem } from '../../api/types';
import { mayUse, useSession } from '../../session';
import { Amount, Button, Empty, Field, Loading, PageHead, Problem, Select, usePageTitle } from '../../ui';
import { words } from '../../words';
import { Chart } from './Chart';
import { dateOf, dateOrNone, rangeOf, startOf } from './range';
import { Statement } from './Statement';
import { seriesOf, sumsBy, total, type By } from './sums';
import { DaysTable, SumsTable } from './Tables';
import '../../styles/usage.css';

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
  const change = (next: { from?: string; to?: string; by?: string }) => void navigate({ search: (now) => ({ ...now, ...next }), replace: true });

  const query = { ...range.query, group_by: by === 'day' ? 'day' : `day,${by}` };
  const usage = useQuery({
    queryKey: queryKeys.usage(query),
    queryFn: ({ signal }) => call<{ data: UsageItem[] }>('GET', path, { query, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: (q) => (q.state.data?.data.some((item) => item.tasks.pending + item.tasks.processing > 0) ? 60_000 : false),
  });
  const keys = useQuery({
    queryKey: queryKeys.keyNames,
    queryFn: ({ signal }) => call<List<Key>>('GET', '/v1/keys', { query: { limit: 100 }, signal }),
    enabled: by === 'key' && mayUse(session, 'manage'),
  });
  const nameOf = (name: string) => {
    const key = by === 'key' && keys.data?.data.find((k) => k.id === name);
    return key ? `${key.name} …${key.last_four}` : name;
  };

  const rows = usage.data?.data;
  const series = useMemo(() => seriesOf(rows ?? [], by, range.days.map(dateOf), w.others), [rows, by, range]);
  const save = useMutation({ mutationFn: () => download(path, query, `usage-${range.first}-${range.last}.csv`) });
  // Messages of errors begin with the field's name.
  const fault = (name: 'from' | 'to') => (range.preset === 'own' && usage.error instanceof ApiError && usage.error.message.startsWith(`${name} `) ? usage.error.message : null);
  const sum = total(rows ?? []);
  const { pending, processing, completed, failed, cancelled } = sum.tasks;
  return (
    <div className="usagepage">
      <PageHead title={w.title} lead={w.lead} />
      <div className="usagecontrols">
        <Select
          label={w.range}
          value={range.preset}
          options={[
            { value: '7d', label: w.last(7) },
            { value: '30d', label: w.last(30) },
            { value: '90d', label: w.last(90) },
            { value: 'own', label: w.own },
          ]}
          onChange={(e) => change(e.target.value === 'own' ? { from: range.first, to: range.last } : { from: e.target.value, to: undefined })}
        />
        {range.preset === 'own' && (
          <>
            <Field label={w.first} type="date" max={range.last} value={dateOrNone(range.first)} error={fault('from')} onChange={(e) => e.target.value && change({ from: e.target.value })} />
            <Field label={w.lastDay} type="date" min={range.first} value={dateOrNone(range.last)} error={fault('to')} onChange={(e) => e.target.value && change({ to: e.target.value })} />
          </>
        )}
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
        <Button disabled={save.isPending} onClick={() => save.mutate()}>
          {w.download}
        </Button>
      </div>
      <div className="stack">
        <Problem error={fault('from') || fault('to') ? null : (usage.error ?? save.error)} />
        {usage.isPending && <Loading />}
        {rows && (
          <>
            <dl className="figures" aria-live="polite">
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
                <Chart label={w.chart(w.names[by], range.first, range.last)} days={range.days} series={series} nameOf={nameOf} currency={session.currency} />
                <SumsTable by={by} sums={sumsBy(rows, by)} total={sum} nameOf={nameOf} series={series} currency={session.currency} />
                {by !== 'day' && <DaysTable days={range.days.map(dateOf)} series={series} nameOf={nameOf} currency={session.currency} />}
              </>
            )}
          </>
        )}
        <Statement range={range} currency={session.currency} />
      </div>
    </div>
  );
}

function Figure({ name, value }: { name: string; value: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value.toLocaleString('en-GB')}</dd>
    </div>
  );
}
