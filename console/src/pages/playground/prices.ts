import type { ModelPricing } from '../../api/types';
import { words } from '../../words';

const w = words.playground;

export type PriceSpan = Pick<ModelPricing, 'unit' | 'from' | 'to'>;

/** The price to show for a range: the lowest one, and whether there are higher ones. The price of a single character is
 * too small to read, so speech is priced per thousand. */
export function priceOf({ unit, from, to }: PriceSpan) {
  const many = unit === 'character' ? 1000 : 1;
  return { amount: Number((from * many).toPrecision(6)), isLeast: from < to, unit: w.units[unit as keyof typeof w.units] ?? unit };
}
