// The figures of the chart as tables.
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Amount, Right, Table } from '../../ui';
import { words } from '../../words';
import { mostSeries, type By, type Series, type Sum } from './sums';
import type { tasksOf } from './tasks';
import css from './usage.module.css';

const w = words.usage;

interface Common {
  series: readonly Series[];
  nameOf: (name: string) => string;
  currency: string;
  /** The tasks behind a row. */
  tasks: (name: string) => ReturnType<typeof tasksOf>;
}

/** Cost and numbers of tasks by day, model or key, with the colours of the chart. */
export function SumsTable({ by, sums, total, nameOf, series, currency, tasks }: Common & { by: By; sums: readonly Sum[]; total: Sum }) {
  const colour = (name: string) => {
    const i = series.findIndex((one) => one.name === name);
    return i >= 0 ? i : mostSeries - 1;
  };
  const row = (sum: Sum) => (
    <>
      <Value label={w.cost}>
        <Amount value={sum.cost} currency={currency} />
      </Value>
      <Value label={w.share}>{total.cost > 0 ? w.percent(Math.round((100 * sum.cost) / total.cost)) : ''}</Value>
      <Value label={w.completed}>{sum.tasks.completed}</Value>
      <Value label={w.failed}>{sum.tasks.failed}</Value>
      <Value label={w.cancelled}>{sum.tasks.cancelled}</Value>
      <Value label={w.open}>{sum.tasks.pending + sum.tasks.processing}</Value>
    </>
  );
  return (
    <Table cards label={w.table(w.names[by])} head={[w.column[by], <Right>{w.cost}</Right>, <Right>{w.share}</Right>, <Right>{w.completed}</Right>, <Right>{w.failed}</Right>, <Right>{w.cancelled}</Right>, <Right>{w.open}</Right>]}>
      {sums.map((sum) => (
        <tr key={sum.name}>
          <th scope="row" className="foreign">
            {by !== 'day' && <span className={`${css.swatch} ${css[`c${colour(sum.name)}`]}`} />}
            <Link to="/tasks" search={tasks(sum.name)} title={w.tasksOf(nameOf(sum.name))}>
              {nameOf(sum.name)}
            </Link>
          </th>
          {row(sum)}
        </tr>
      ))}
      <tr className={css.total}>
        <th scope="row">{w.total}</th>
        {row(total)}
      </tr>
    </Table>
  );
}

/** A figure of a row. On a phone its heading stands beside it. */
function Value({ label, children }: { label: string; children: ReactNode }) {
  return (
    <td className="number" data-label={label}>
      {children}
    </td>
  );
}

/** The cost of each day, by the series of the chart. Days without cost are left out. */
export function DaysTable({ days, series, nameOf, currency, tasks }: Common & { days: readonly string[] }) {
  const some = days.map((day, i) => ({ day, i })).filter(({ i }) => series.some((one) => one.values[i]));
  return (
    <details>
      <summary>{w.dayByDay}</summary>
      <Table cards label={w.dayByDay} head={[w.column.day, ...series.map((one) => <Right className="foreign">{nameOf(one.name)}</Right>)]}>
        {some.reverse().map(({ day, i }) => (
          <tr key={day}>
            <th scope="row">
              <Link to="/tasks" search={tasks(day)} title={w.tasksOf(day)}>
                {day}
              </Link>
            </th>
            {series.map((one) => (
              <td key={one.name} className="number" data-label={nameOf(one.name) || w.cost}>
                {one.values[i] ? <Amount value={one.values[i]} currency={currency} /> : words.ui.none}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </details>
  );
}
