// The period for which usage is shown: whole days in UTC, chosen in the URL.

const day = 86_400;
const presets = ['7d', '30d', '90d'] as const;
const mostDays = 366;

export interface Range {
  preset: (typeof presets)[number] | 'own';
  /** The first and last day, as shown. */
  first: string;
  last: string;
  /** The same for the API, which takes the day after the last one as the end. */
  query: { from: string; to?: string };
  /** The start of each day in Unix seconds. */
  days: number[];
}

/** The chosen period: the name of a preset, or two dates. */
export interface Chosen {
  from?: string | undefined;
  to?: string | undefined;
}

export const dateOf = (unix: number) => new Date(unix * 1000).toISOString().slice(0, 10);

/** The start of a date in UTC, in Unix seconds; NaN if the text is no date. */
export function startOf(date: string): number {
  return /^\d{4}-\d{2}-\d{2}$/.test(date) ? Date.parse(`${date}T00:00:00Z`) / 1000 : NaN;
}

/** The value for a date field: empty if the text is no date. */
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
  // A text that is no date goes to the API as it is, and the API's error says what is wrong with it.
  return { preset: 'own', first: from, last: to, query: { from, to: Number.isNaN(end) ? to : dateOf(end + day) }, days: daysBetween(startOf(from), end) };
}

function daysBetween(first: number, last: number): number[] {
  const days: number[] = [];
  for (let at = first; at <= last && days.length <= mostDays; at += day) days.push(at);
  return days;
}
