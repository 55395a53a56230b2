// The statement of an account: one line for each task, with the balance after it.
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { call } from '../../api/client';
import { useSaveCSV } from '../../api/csv';
import { queryKeys } from '../../api/queryKeys';
import type { components } from '../../api/openapi';
import { Amount, Button, Empty, Loading, Problem, Right, Table, Time } from '../../ui';
import { words } from '../../words';
import type { Range } from './range';
import css from './usage.module.css';

const w = words.usage;

type Page = components['schemas']['TaskStatement'];
type Line = components['schemas']['TaskStatementLine'];

interface Props {
  /** The path of the API that returns the statement. */
  path: string;
  range: Range;
  currency: string;
  /** The route of the page of a task. */
  taskPage: '/tasks/$id' | '/operator/tasks/$id';
}

/** The statement, shown on demand, or downloaded as a file whose name starts with the given one. The children stand
 * beside its buttons. */
export function Statement({ name, note, children, ...rest }: Props & { name: string; note?: string; children?: ReactNode }) {
  const { path, range } = rest;
  const [open, setOpen] = useState(false);
  const save = useSaveCSV(path, { ...range.query, by: 'task' }, `${name}-${range.first}-${range.last}`);
  return (
    <section className="stack">
      <div className={css.sectionhead}>
        <div>
          <h2>{w.statement}</h2>
          <p className="soft">{w.statementLead}</p>
          {note && <p className="soft">{note}</p>}
        </div>
        <div className="actions">
          {children}
          <Button aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? w.hideStatement : w.showStatement}
          </Button>
          <Button disabled={save.isPending} onClick={() => save.mutate()}>
            {w.downloadStatement}
          </Button>
        </div>
      </div>
      <Problem error={save.error} />
      <p role="status" className={save.data ? 'note warn' : 'sr'}>
        {save.data ? w.cut : ''}
      </p>
      {open && <Lines {...rest} />}
    </section>
  );
}

function Lines({ path, range, currency, taskPage }: Props) {
  const pages = useInfiniteQuery({
    queryKey: queryKeys.statement(path, range.query),
    queryFn: ({ pageParam, signal }) => call<Page>('GET', path, { query: { ...range.query, by: 'task', limit: 100, after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => (page.has_more ? page.data.at(-1)?.id : undefined),
    placeholderData: keepPreviousData,
  });
  const first = pages.data?.pages[0];
  const last = pages.data?.pages.at(-1);
  if (!pages.data || !first || !last) return pages.error ? <Problem error={pages.error} /> : <Loading />;
  const lines = pages.data.pages.flatMap((page) => page.data);
  if (lines.length === 0) return <Empty title={w.nothingMoved} />;
  return (
    <>
      <Problem error={pages.error} />
      <Table cards label={w.statement} head={[words.ui.inZone(w.time, 'UTC'), w.what, <Right>{w.amount}</Right>, <Right>{w.balance}</Right>, w.about, w.model]}>
        <BalanceRow word={w.opening} balance={first.opening.balance} currency={currency} />
        {lines.map((line) => (
          <LineRow key={line.id} line={line} currency={currency} taskPage={taskPage} />
        ))}
        {!last.has_more && <BalanceRow word={w.closing} balance={last.closing.balance} currency={currency} />}
      </Table>
      {pages.hasNextPage && (
        <div className="row">
          <Button disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            {w.moreLines}
          </Button>
        </div>
      )}
    </>
  );
}

function BalanceRow({ word, balance, currency }: { word: string; balance: string; currency: string }) {
  return (
    <tr className={css.total}>
      <th scope="row" colSpan={3}>
        {word}
      </th>
      <td className="number">
        <Amount value={balance} currency={currency} />
      </td>
      <td colSpan={2} />
    </tr>
  );
}

function LineRow({ line, currency, taskPage }: { line: Line } & Pick<Props, 'currency' | 'taskPage'>) {
  return (
    <tr>
      <td className="nowrap">
        <Time unix={line.at} utc />
      </td>
      <td>{w.kinds[line.kind]}</td>
      <td className="number" data-label={w.amount}>
        <Amount value={line.amount} currency={currency} />
      </td>
      <td className="number" data-label={w.balance}>
        <Amount value={line.balance} currency={currency} />
      </td>
      <td className={`foreign mono ${css.ref}`}>
        {line.task?.startsWith('task_') ? (
          <Link to={taskPage} params={{ id: line.task }}>
            {line.task}
          </Link>
        ) : (
          (line.task ?? line.reference)
        )}
      </td>
      <td className={`foreign ${css.model}`}>{line.model}</td>
    </tr>
  );
}
