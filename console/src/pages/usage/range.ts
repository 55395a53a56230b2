// The time of which usage is shown: whole days in UTC, by the address.

const day = 86_400;
const presets = ['7d', '30d', '90d'] as const;
const mostDays = 366;

export interface Range {
  preset: (typeof presets)[number] | 'own';
  /** First and last day, as they are shown. */
  first: string;
  last: string;
  /** The same for the API, whose end is the day after the last one. */
  query: { from: string; to?: string };
  /** Unix seconds of each day's beginning. */
  days: number[];
}

/** The chosen range: the name of a preset, or two dates. */
export interface Chosen {
  from?: string | undefined;
  to?: string | undefined;
}

export const dateOf = (unix: number) => new Date(unix * 1000).toISOString().slice(0, 10);

/** Unix seconds of a date's beginning in UTC, or NaN. */
export function startOf(date: string): number {
  return /^\d{4}-\d{2}-\d{2}$/.test(date) ? Date.parse(`${date}T00:00:00Z`) / 1000 : NaN;
}

/** What an input of a date takes. */
export const dateOrNone = (date: string) => (Number.isNaN(startOf(date)) ? '' : date);

export function rangeOf(search: Chosen, now: number): Range {
  const today = Math.floor(now / day) * day;
  const from = search.from ?? '30d';
  const preset = presets.find((p) => p === from);
  if (preset) {
    const first = today - (parseInt(preset, 10) - 1) * day;
    return { preset, first: dateOf(first), last: dateOf(today), query: { from: dateOf(first) }, days: daysBetween(first, today) };
  }
  const to = search.to ?? dateOf(today);
  const end = startOf(to);
  // What is no date goes to the API, which says what is wrong with it.
  return { preset: 'own', first: from, last: to, query: { from, to: Number.isNaN(end) ? to : dateOf(end + day) }, days: daysBetween(startOf(from), end) };
}

function daysBetween(first: number, last: number): number[] {
  const days: number[] = [];
  for (let at = first; at <= last && days.length <= mostDays; at += day) days.push(at);
  return days;
}
