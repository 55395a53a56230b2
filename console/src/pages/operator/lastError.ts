// The vendor's last error, for the card at the head of a task's page.
import type { Story } from '../../api/admin';

type Attempt = Story['attempts'][number];
export type FailedAttempt = Attempt & { error: string };

/** The newest attempt that has an error, or undefined. A completed task has none: its earlier errors are history, which the
 * table of attempts keeps. */
export function lastErrorOf({ status, attempts }: Pick<Story, 'status' | 'attempts'>): FailedAttempt | undefined {
  if (status === 'completed') return undefined;
  return attempts.findLast((a): a is FailedAttempt => a.error !== null);
}
