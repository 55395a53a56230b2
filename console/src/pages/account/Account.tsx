import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { components } from '../../api/openapi';
import type { Key } from '../../api/types';
import { mayUse, ownKeyQuery, useSession } from '../../session';
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

// The amounts that are left of the limits of the session's key.
function KeyMoney({ currency, owner }: { currency: string; owner: Key }) {
  const { data: key, error } = useQuery(ownKeyQuery);
  const caps = key ? capsOf(key, currency) : [];
  return (
    <section className="card">
      <h2>
        {w.thisKey} <span className="foreign soft">{owner.name}</span>
      </h2>
      {!key && <Problem error={error} />}
      {key && (
        <>
          <p className={css.big}>
            {key.quota === null ? <span>{w.noQuota}</span> : <Amount value={Number(key.quota) - Number(key.held) - Number(key.spent)} currency={currency} />}
            {key.quota !== null && <span className="soft">{w.left}</span>}
          </p>
          <Facts rows={[[w.keySpent, <Amount value={key.spent} currency={currency} />], caps.length > 0 && [w.caps, caps.join(', ')]]} />
          {key.quota === null && <p className="hint">{w.noQuotaHint}</p>}
        </>
      )}
    </section>
  );
}
