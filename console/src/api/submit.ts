// Submits whose answer may be lost on its way. The same request with the same Idempotency-Key
// makes and charges nothing twice.
import { useRef } from 'react';
import { ApiError, AwayError, newKey } from './client';

/** Whether the API may have taken a request whose answer did not come. */
export const isLost = (error: unknown) => error instanceof AwayError || (error instanceof ApiError && error.status >= 502);

/** How a submit is repeated until its answer comes. */
export const untilAnswered = {
  retry: (count: number, error: unknown) => isLost(error) && count < 60,
  retryDelay: (count: number) => Math.min(1000 * 2 ** count, 5000),
};

/** Gives a request its key, and the same request the same key as long as its answer is lost. */
export class SubmitKey {
  private sent: { text: string; key: string } | undefined;

  of(request: unknown): string {
    const text = JSON.stringify(request);
    if (this.sent?.text !== text) this.sent = { text, key: newKey() };
    return this.sent.key;
  }

  /** Notes how the request ended. */
  settle(error: unknown): void {
    if (!isLost(error)) this.sent = undefined;
  }
}

export function useSubmitKey(): SubmitKey {
  const key = useRef<SubmitKey>(undefined);
  return (key.current ??= new SubmitKey());
}
