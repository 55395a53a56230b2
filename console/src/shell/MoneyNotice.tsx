// Says that the balance is below the amount of an endpoint, or that the session's key has little left of its quota or a
// cap. It asks once, and again when a task starts or ends and when the window gets the focus.
import { useQuery } from '@tanstack/react-query';
import { call } from '../api/client';
import { queryKeys } from '../api/queryKeys';
import type { components } from '../api/openapi';
import type { Session } from '../api/types';
import { endpointsQuery } from '../pages/webhooks/query';
import { mayUse, ownKeyQuery } from '../session';
import { formatAmount, formatTime } from '../ui';
import { words } from '../words';
import { isLow, usedLimits } from './money';

const w = words.shell;

type OwnAccount = components['schemas']['Account'];

const staleTime = 60_000;

export function MoneyNotice({ session }: { session: Session }) {
  const manages = !session.operator && mayUse(session, 'manage');
  const endpoints = useQuery({ ...endpointsQuery, enabled: manages, staleTime });
  const bounds = endpoints.data?.data.flatMap((e) => (e.enabled && e.balance_low !== null ? [Number(e.balance_low)] : [])) ?? [];
  const account = useQuery({
    queryKey: queryKeys.account,
    queryFn: ({ signal }) => call<OwnAccount>('GET', '/v1/account', { signal }),
    enabled: bounds.length > 0 && mayUse(session, 'read'),
    staleTime,
  });
  const { quota, caps } = session.key ?? {};
  const limited = quota != null || Object.values(caps ?? {}).some((cap) => cap !== null);
  const key = useQuery({ ...ownKeyQuery, enabled: limited, staleTime });
  const used = key.data ? usedLimits(key.data, key.dataUpdatedAt) : [];
  const low = account.data && isLow(Number(account.data.available), bounds);
  return (
    <div role="status" className="awayline">
      {low && <p className="note warn">{w.balanceLow(formatAmount(account.data.available, session.currency))}</p>}
      {used.map(({ limit, percent, until }) => (
        <p key={limit} className="note warn">
          <span>{percent >= 100 ? w.limitUsed(w.limits[limit]) : w.limitLow(w.limits[limit], percent)}</span>
          {until !== null && <span> {w.resets(formatTime(until))}</span>}
        </p>
      ))}
    </div>
  );
}
