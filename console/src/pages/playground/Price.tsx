// The price of the request as it is typed, and what it leaves of the budget.
import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { Quote } from '../../api/types';
import { Amount } from '../../ui';
import { words } from '../../words';
import type { Values } from './schema';
import css from './playground.module.css';

const w = words.playground.price;

/** The value, once it has not changed for a while. */
export function useSettled<T>(value: T, milliseconds = 350): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), milliseconds);
    return () => window.clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

/** The quote for a body. Without a body there is none. */
export function useQuote(endpoint: string, body: Values | undefined) {
  return useQuery({
    queryKey: queryKeys.quote(endpoint, body),
    queryFn: ({ signal }) => call<Quote>('POST', '/v1/quote', { body: { ...body, endpoint }, signal }),
    enabled: body !== undefined,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}

interface Balance {
  success: boolean;
  remain_balance?: number;
  unlimited_quota?: boolean;
}
export const balanceQuery = queryOptions({
  queryKey: queryKeys.leftBalance,
  // Of the key's quota and the account's balance, the smaller one is the limit.
  queryFn: async () => {
    const [key, account] = await Promise.all([call<Balance>('GET', '/v1/balance'), call<Balance>('GET', '/v1/user/balance')]);
    const [quota, balance] = [key.unlimited_quota ? undefined : key.remain_balance, account.remain_balance];
    if (quota !== undefined && (balance === undefined || quota < balance)) return { left: quota, of: 'quota' as const };
    return balance === undefined ? null : { left: balance, of: 'balance' as const };
  },
});

export function Price({ quote, example }: { quote: Quote | undefined; example: boolean }) {
  const { data: budget } = useQuery(balanceQuery);
  if (!quote) return <p className={`${css.price} soft`}>{w.none}</p>;
  const short = !!budget && budget.left < quote.cost;
  return (
    <details className={css.price}>
      <summary>
        <span className={css.cost} aria-live="polite">
          <span className="sr">{w.label} </span>
          {example && <span>{w.about} </span>}
          <Amount value={quote.cost} currency={quote.currency} />
        </span>
        <span className={short ? `${css.left} fault` : css.left}>
          {budget && (
            <>
              <span>{short ? w.short : w.left}</span> <Amount value={short ? budget.left : budget.left - quote.cost} currency={quote.currency} />{' '}
              <span>{(short ? w.shortOf : w.leftOf)[budget.of]}</span>
            </>
          )}
        </span>
      </summary>
      <table>
        <thead>
          <tr>
            <th scope="col">{w.item}</th>
            <th scope="col" className="number">
              {w.quantity}
            </th>
            <th scope="col" className="number">
              {w.each}
            </th>
            <th scope="col" className="number">
              {w.amount}
            </th>
          </tr>
        </thead>
        <tbody>
          {quote.breakdown.map((line, i) => (
            <tr key={i}>
              <td>{line.item}</td>
              <td className="number">{line.quantity}</td>
              <td className="number">
                <Amount value={line.unit_price} currency={quote.currency} />
              </td>
              <td className="number">
                <Amount value={line.amount} currency={quote.currency} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="hint">{w.hold(quote.credits_cost)}</p>
    </details>
  );
}
