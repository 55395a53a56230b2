// The preview of a command for many tasks, as the API's dry run counts it.
import type { Matched, SkipReason } from '../../api/admin';
import { operatorWords } from '../../words/operator';

export interface SkippedBy {
  reason: string;
  text: string;
  n: number;
}

export interface Preview {
  /** How many tasks the dry run checked, the newest first. */
  checked: number;
  /** Whether more tasks match than the dry run checked. */
  isPartial: boolean;
  /** To how many of the checked tasks the command applies. */
  applies: number;
  /** How many of the checked tasks the job would skip, and how many for each reason, the most frequent first. */
  skips: number;
  skipped: readonly SkippedBy[];
  /** Whether the job would change nothing. */
  isIdle: boolean;
}

// The type checks that each reason of the API has its words. An API of a newer version may send others.
const reasons: Record<SkipReason, string> = operatorWords.bulk.skip;

/** The counts of a dry run, or null if an API of an older version sent none. */
export function previewOf({ matched, checked, applies, skipped }: Matched): Preview | null {
  if (checked === undefined || applies === undefined) return null;
  const isPartial = checked < matched;
  return {
    checked,
    isPartial,
    applies,
    skips: checked - applies,
    skipped: Object.entries(skipped ?? {})
      .map(([reason, n]) => ({ reason, text: (reasons as Record<string, string | undefined>)[reason] ?? reason, n }))
      .sort((a, b) => b.n - a.n),
    isIdle: applies === 0 && !isPartial,
  };
}
