// Says that the balance is below what an endpoint of the account names, or that the key of this session
// has little left of its quota. It asks once, and again when another page is opened some time later.
import { useQuery } from '@tanstack/react-query';
import { call } from '../api/client';
import { queryKeys } from '../api/queryKeys';
import type { components } from '../api/openapi';
import type { Session } from '../api/types';
import { endpointsQuery } from '../pages/webhooks/query';
import { mayUse } from '../session';
import { formatAmount } from '../ui';
import { words } from '../words';
import { isLow, percentUsed } from './money';

const w = words.shell;

type OwnAccount = components['schemas']['Account'];
type KeyBalance = components['schemas']['TokenBalance'];

const staleTime = 60_000;

export function MoneyNotice({ session }: { session: Session }) {
  const manages = !session.operator && mayUse(session, 'manage');
  const limited = !session.operator && session.key?.quota != null;
  const endpoints = useQuery({ ...endpointsQuery, enabled: manages, staleTime });
  const bounds = endpoints.data?.data.flatMap((e) => (e.enabled && e.balance_low !== null ? [Number(e.balance_low)] : [])) ?? [];
  const account = useQuery({
    queryKey: queryKeys.account,
    queryFn: ({ signal }) => call<OwnAccount>('GET', '/v1/account', { signal }),
    enabled: bounds.length > 0 && mayUse(session, 'read'),
    staleTime,
  });
  const key = useQuery({ queryKey: queryKeys.keyBalance, queryFn: ({ signal }) => call<KeyBalance>('GET', '/v1/balance', { signal }), enabled: limited, staleTime });
  const percent = limited && key.data ? percentUsed(Number(session.key?.quota), key.data.remain_balance) : 0;
  const low = account.data && isLow(Number(account.data.available), bounds);
  return (
    <div role="status" className="awayline">
      {low && <p className="note warn">{w.balanceLow(formatAmount(account.data.available, session.currency))}</p>}
      {percent >= 80 && <p className="note warn">{percent >= 100 ? w.quotaUsed : w.quotaLow(percent)}</p>}
    </div>
  );
}
