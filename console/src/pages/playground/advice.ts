import { ApiError } from '../../api/client';
import { words } from '../../words';

const w = words.playground.advice;

/** Advice for a refused request: what is wrong, and what to do. */
export function adviceOf(error: unknown): readonly string[] | undefined {
  if (!(error instanceof ApiError)) return undefined;
  // Two music operations answer 403 where all others answer 402, so the message decides.
  if (/^the key's (quota|cap)\b/.test(error.message)) return w.limit;
  if (error.message.startsWith('insufficient balance')) return w.balance;
  if (error.message.startsWith('the account is suspended')) return w.suspended;
  return w.status[error.status];
}
