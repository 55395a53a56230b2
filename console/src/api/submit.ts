// Submits whose answer may be lost. A repeat with the same Idempotency-Key makes no second task and no second charge.
import { useRef } from 'react';
import { ApiError, AwayError, newKey } from './client';

/** Whether the API may have accepted a request although its answer was lost. */
export const isLost = (error: unknown) => error instanceof AwayError || (error instanceof ApiError && error.status >= 502);

/** Repeats a submit until its answer arrives. */
export const untilAnswered = {
  retry: (count: number, error: unknown) => isLost(error) && count < 60,
  retryDelay: (count: number) => Math.min(1000 * 2 ** count, 5000),
};

/** Gives each request an Idempotency-Key, and keeps it for the same request as long as the answer is lost. */
export class SubmitKey {
  private sent: { text: string; key: string } | undefined;

  of(request: unknown): string {
    const text = JSON.stringify(request);
    if (this.sent?.text !== text) this.sent = { text, key: newKey() };
    return this.sent.key;
  }

  /** Records how the request ended. */
  settle(error: unknown): void {
    if (!isLost(error)) this.sent = undefined;
  }
}

export function useSubmitKey(): SubmitKey {
  const key = useRef<SubmitKey>(undefined);
  return (key.current ??= new SubmitKey());
}
