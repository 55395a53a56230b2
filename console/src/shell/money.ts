/** How much of a quota is held and spent, in percent, rounded down. */
export function percentUsed(quota: number, left: number): number {
  return quota > 0 ? Math.max(0, Math.floor(100 - (100 * left) / quota)) : 0;
}

/** Whether a balance is below one of these amounts. */
export function isLow(available: number, bounds: readonly number[]): boolean {
  return bounds.some((bound) => available < bound);
}
