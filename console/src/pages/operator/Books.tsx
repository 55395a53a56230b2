// The check of the ledger, and the usage of all accounts.
import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/client';
import { useSaveCSV } from '../../api/csv';
import { queryKeys } from '../../api/queryKeys';
import type { LedgerReport } from '../../api/admin';
import type { UsageItem } from '../../api/types';
import { useSession } from '../../session';
import { Foreign } from '../../task/Foreign';
import { Amount, Button, Empty, Loading, PageHead, Problem, Right, Select, Table, usePageTitle } from '../../ui';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';
import { AccountLink } from './parts';
import css from './operator.module.css';

const w = operatorWords;

type Row = UsageItem & { account?: string; account_name?: string };
const groups = ['day', 'model', 'account', 'key'] as const;

export function Books() {
  usePageTitle(w.books);
  const check = useMutation({ mutationFn: () => call<LedgerReport>('GET', '/admin/v1/ledger/check') });
  return (
    <>
      <PageHead title={w.books} />
      <div className="stack">
        <section className="card stack" aria-labelledby="check">
          <h2 id="check">{w.check}</h2>
          <p className="soft">{w.checkHint}</p>
          <div>
            <Button variant="main" disabled={check.isPending} onClick={() => check.mutate()}>{check.isPending ? words.shell.loading : w.checkNow}</Button>
          </div>
          <Problem error={check.error} />
          <div role="status">
            {check.data?.ok && <p className="note good">{w.checkOk(check.data.checked)}</p>}
            {check.data && !check.data.ok && (
              <div className="note bad">
                <p>{w.checkBad(check.data.problems.length)}</p>
                <Foreign text={check.data.problems.join('\n')} limit={4000} />
              </div>
            )}
          </div>
        </section>
        <Usage />
      </div>
    </>
  );
}

function Usage() {
  const { currency } = useSession();
  const [by, setBy] = useState<(typeof groups)[number]>('day');
  const { data, error } = useQuery({
    queryKey: queryKeys.adminUsage(by),
    queryFn: ({ signal }) => call<{ data: Row[] }>('GET', '/admin/v1/usage', { query: { group_by: by }, signal }),
    placeholderData: keepPreviousData,
  });
  const save = useSaveCSV('/admin/v1/usage', { group_by: by }, `usage-by-${by}`);
  return (
    <section className="stack" aria-labelledby="usage">
      <div className={`row ${css.spread}`}>
        <h2 id="usage">{w.usage}</h2>
        <div className="row">
          <Select label={w.groupBy} value={by} onChange={(e) => setBy(e.target.value as (typeof groups)[number])} options={groups.map((value) => ({ value, label: w.group_by[value] }))} />
          <Button disabled={save.isPending} onClick={() => save.mutate()}>{w.downloadCSV}</Button>
        </div>
      </div>
      <Problem error={error ?? save.error} />
      {!data && !error && <Loading />}
      {data?.data.length === 0 && <Empty title={w.noUsage} />}
      {data && data.data.length > 0 && (
        <Table cards label={w.usage} head={[w.group_by[by], <Right>{w.cost}</Right>, <Right>{w.completed}</Right>, <Right>{w.failed}</Right>, <Right>{w.cancelled}</Right>, <Right>{w.open}</Right>]}>
          {data.data.map((row, i) => (
            <tr key={i}>
              <th scope="row" className={by === 'day' ? 'nowrap' : `foreign ${css.named}`}><Named by={by} row={row} /></th>
              <td className="number" data-label={w.cost}><Amount value={row.cost} currency={currency} /></td>
              <td className="number" data-label={w.completed}>{row.tasks.completed}</td>
              <td className="number" data-label={w.failed}>{row.tasks.failed}</td>
              <td className="number" data-label={w.cancelled}>{row.tasks.cancelled}</td>
              <td className="number" data-label={w.open}>{row.tasks.pending + row.tasks.processing}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

/** The name of a row. An account or a key has its id below its name, since two of them may have the same name. */
function Named({ by, row }: { by: (typeof groups)[number]; row: Row }) {
  const id = row[by];
  if (!id) return <>{words.ui.none}</>;
  if (by !== 'account' && by !== 'key') return <>{id}</>;
  const name = (by === 'account' ? row.account_name : row.key_name) || id;
  return (
    <>
      {by === 'account' ? <AccountLink id={id} name={name} /> : <span>{name.slice(0, 80)}</span>}
      {name !== id && <p className="mono soft">{id}</p>}
    </>
  );
}
