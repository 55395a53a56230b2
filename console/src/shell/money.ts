import type { Key } from '../api/types';

/** The limits on what a key may spend. */
type Limit = 'quota' | 'day' | 'week' | 'month';

export interface UsedLimit {
  limit: Limit;
  /** The share of the limit that is held or spent, in percent, rounded down. */
  percent: number;
  /** The end of the cap's period in Unix seconds; null for the quota. */
  until: number | null;
}

/** The limits of a key of which at least 80 % were used at a time in milliseconds, that of the read. */
export function usedLimits(key: Key, at: number): UsedLimit[] {
  const used: UsedLimit[] = [{ limit: 'quota', percent: percentUsed(micros(key.held) + micros(key.spent), micros(key.quota)), until: null }];
  for (const period of ['day', 'week', 'month'] as const) {
    used.push({ limit: period, percent: percentUsed(micros(key.caps_used[period]), micros(key.caps[period])), until: endOf(period, new Date(at)) });
  }
  return used.filter(({ percent }) => percent >= 80);
}

const micros = (amount: string | null) => Math.round(Number(amount) * 1e6);

/** The used share in percent. It is 0 for a limit of zero, and without a limit. */
function percentUsed(used: number, limit: number): number {
  return limit > 0 ? Math.floor((100 * used) / limit) : 0;
}

/** The end of the day, the week or the month in UTC, in Unix seconds. */
function endOf(period: 'day' | 'week' | 'month', at: Date): number {
  const [year, month, date] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
  const sinceMonday = (at.getUTCDay() + 6) % 7;
  const end = { day: Date.UTC(year, month, date + 1), week: Date.UTC(year, month, date - sinceMonday + 7), month: Date.UTC(year, month + 1) }[period];
  return end / 1000;
}

/** Whether a balance is below one of these amounts. */
export function isLow(available: number, bounds: readonly number[]): boolean {
  return bounds.some((bound) => available < bound);
}
