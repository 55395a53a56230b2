import { ApiError } from '../../api/client';
import { words } from '../../words';

const w = words.playground.advice;

/** Advice for a refused request: the fault first, then the remedy. */
export function adviceOf(error: unknown): readonly string[] | undefined {
  if (!(error instanceof ApiError)) return undefined;
  // Two operations of music answer 403 where all others answer 402; the message says what is short.
  if (/^the key's (quota|cap)\b/.test(error.message)) return w.limit;
  if (error.message.startsWith('insufficient balance')) return w.balance;
  if (error.message.startsWith('the account is suspended')) return w.suspended;
  return w.status[error.status];
}
