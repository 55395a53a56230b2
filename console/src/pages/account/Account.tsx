import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { components } from '../../api/openapi';
import type { Key } from '../../api/types';
import { mayUse, useSession } from '../../session';
import { Amount, Facts, PageHead, Problem, Time, usePageTitle } from '../../ui';
import { words } from '../../words';
import { capsOf } from '../keys/KeyItem';
import { Callbacks } from './Callbacks';
import { SessionCard } from './SessionCard';
import { Webhook } from './Webhook';
import { WebhookSecret } from './WebhookSecret';
import css from './account.module.css';

const w = words.account;

type OwnAccount = components['schemas']['Account'];
type KeyBalance = components['schemas']['TokenBalance'];

export function Account() {
  usePageTitle(w.title);
  const session = useSession();
  const reads = mayUse(session, 'read');
  const manages = mayUse(session, 'manage');
  return (
    <div className={css.accountpage}>
      <PageHead title={<span className="foreign">{session.account?.name}</span>} lead={<span className="mono">{session.account?.id}</span>} />
      <div className="stack">
        <div className="columns">
          {reads && <Money currency={session.currency} />}
          {session.key && <KeyMoney currency={session.currency} owner={session.key} />}
          <SessionCard session={session} />
          {manages && reads && <Webhook />}
          {manages && <WebhookSecret />}
        </div>
        {reads && <Callbacks maySend={manages} />}
      </div>
    </div>
  );
}

function Money({ currency }: { currency: string }) {
  const account = useQuery({
    queryKey: queryKeys.account,
    queryFn: ({ signal }) => call<OwnAccount>('GET', '/v1/account', { signal }),
    refetchInterval: (q) => (Number(q.state.data?.held) > 0 ? 15_000 : false),
  });
  const a = account.data;
  return (
    <section className="card">
      <h2>{w.balance}</h2>
      {!a && <Problem error={account.error} />}
      {a && (
        <>
          <p className={css.big}>
            <Amount value={a.available} currency={currency} />
            <span className="soft">{w.available}</span>
          </p>
          <Facts
            rows={[
              [w.held, <Amount value={a.held} currency={currency} />],
              [w.spent, <Amount value={a.spent} currency={currency} />],
              [w.group, <span className="foreign">{a.group}</span>],
              a.rate !== null && [w.rate, w.rateOf(a.rate)],
              a.in_flight !== null && [w.inFlight, a.in_flight],
              a.erase_inputs && [w.inputs, w.inputsErased],
              [w.since, <Time unix={a.created} />],
            ]}
          />
          <p className="hint">{w.heldHint}</p>
        </>
      )}
    </section>
  );
}

// What the key of the session has left. It needs no scope.
function KeyMoney({ currency, owner }: { currency: string; owner: Key }) {
  const balance = useQuery({
    queryKey: queryKeys.keyBalance,
    queryFn: async ({ signal }) => {
      const answer = await call<KeyBalance | { success: false; message: string }>('GET', '/v1/balance', { signal });
      if (!answer.success) throw new Error(answer.message);
      return answer as KeyBalance;
    },
  });
  const b = balance.data;
  const caps = capsOf(owner, currency);
  return (
    <section className="card">
      <h2>
        {w.thisKey} <span className="foreign soft">{owner.name}</span>
      </h2>
      {!b && <Problem error={balance.error} />}
      {b && (
        <>
          <p className={css.big}>
            {b.unlimited_quota ? <span>{w.noQuota}</span> : <Amount value={b.remain_balance} currency={currency} />}
            {!b.unlimited_quota && <span className="soft">{w.left}</span>}
          </p>
          <Facts rows={[[w.keySpent, <Amount value={b.used_balance} currency={currency} />], caps.length > 0 && [w.caps, caps.join(', ')]]} />
          {b.unlimited_quota && <p className="hint">{w.noQuotaHint}</p>}
        </>
      )}
    </section>
  );
}
