// Sums over the rows of usage.
import type { UsageItem } from '../../api/types';

export type By = 'day' | 'model' | 'key';
export type Counts = UsageItem['tasks'];

export interface Sum {
  /** The day, or the ID of the model or key. */
  name: string;
  cost: number;
  tasks: Counts;
}

const none: Counts = { pending: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 };
const states = Object.keys(none) as (keyof Counts)[];

// Amounts have at most six decimals. Rounding there removes the errors of binary fractions.
const exact = (amount: number) => Math.round(amount * 1e6) / 1e6;

/** One sum for each name. Models and keys with the highest cost come first, days with the newest first. */
export function sumsBy(rows: readonly UsageItem[], by: By): Sum[] {
  const sums = new Map<string, Sum>();
  for (const row of rows) {
    const name = row[by] ?? '';
    const sum = sums.get(name) ?? { name, cost: 0, tasks: none };
    sums.set(name, add(sum, row));
  }
  const list = [...sums.values()];
  return by === 'day' ? list.sort((a, b) => b.name.localeCompare(a.name)) : list.sort((a, b) => b.cost - a.cost || a.name.localeCompare(b.name));
}

export function total(rows: readonly UsageItem[]): Sum {
  return rows.reduce(add, { name: '', cost: 0, tasks: none });
}

function add(sum: Sum, row: UsageItem): Sum {
  return { name: sum.name, cost: exact(sum.cost + row.cost), tasks: Object.fromEntries(states.map((s) => [s, sum.tasks[s] + row.tasks[s]])) as Counts };
}

export interface Series {
  name: string;
  /** The cost of each day. */
  values: number[];
}

/** The number of colours. All further names share the last series. */
export const mostSeries = 6;

/** The daily costs of the names with the highest cost. If there are more names than colours, the last series is the sum
 * of all others. */
export function seriesOf(rows: readonly UsageItem[], by: By, days: readonly string[], others: string): Series[] {
  const names = by === 'day' ? [''] : sumsBy(rows, by).map((sum) => sum.name);
  const shown = names.length > mostSeries ? names.slice(0, mostSeries - 1) : names;
  const series = shown.map((name) => ({ name, values: days.map(() => 0) }));
  if (shown.length < names.length) series.push({ name: others, values: days.map(() => 0) });
  for (const row of rows) {
    const at = days.indexOf(row.day ?? '');
    const place = by === 'day' ? 0 : shown.indexOf(row[by] ?? '');
    const one = series[place < 0 ? series.length - 1 : place];
    if (one && at >= 0) one.values[at] = exact(one.values[at]! + row.cost);
  }
  return series;
}
