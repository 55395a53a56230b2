// One account: its money, limits, keys, statement and ledger.
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { call, faults } from '../../api/client';
import { useSaveCSV } from '../../api/csv';
import { queryKeys } from '../../api/queryKeys';
import type { Account, LedgerEntry } from '../../api/admin';
import type { List } from '../../api/types';
import { queryClient, useMay, useSession } from '../../session';
import { Foreign } from '../../task/Foreign';
import { Amount, Badge, Button, Code, Dialog, Facts, Field, Loading, PageHead, Problem, formatAmount, usePageTitle } from '../../ui';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';
import { KeyList } from '../keys/Keys';
import { Period } from '../usage/Period';
import { dateOf, rangeOf, startOf, type Chosen } from '../usage/range';
import { Statement } from '../usage/Statement';
import { mostReason } from './Levers';
import { LedgerTable } from './OperatorTask';
import { useSaid } from './parts';
import css from './operator.module.css';

const w = operatorWords;

export function OperatorAccount() {
  const { id } = useParams({ from: '/frame/operator/accounts/$id' });
  usePageTitle(w.account);
  const path = `/admin/v1/accounts/${encodeURIComponent(id)}`;
  const { data: account, error } = useQuery({
    queryKey: queryKeys.adminAccount(id),
    queryFn: ({ signal }) => call<Account>('GET', path, { signal }),
    placeholderData: keepPreviousData,
    refetchInterval: (q) => (Number(q.state.data?.held) > 0 ? 10_000 : false),
  });
  if (!account) return error ? <Problem error={error} /> : <Loading />;
  return <View account={account} path={path} />;
}

function View({ account, path }: { account: Account; path: string }) {
  const { currency } = useSession();
  const [open, setOpen] = useState<'grant' | 'change' | 'suspend' | null>(null);
  const [said, say] = useSaid();
  const may = useMay('admin');
  const ledger = useInfiniteQuery({
    queryKey: queryKeys.adminLedger(account.id),
    queryFn: ({ pageParam, signal }) => call<List<LedgerEntry>>('GET', `${path}/ledger`, { query: { limit: 20, after: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => (last.has_more ? last.data.at(-1)?.id : undefined),
  });
  const entries = useSaveCSV(`${path}/statement`, {}, `ledger-${account.id}`);
  const [chosen, choose] = useState<Chosen>({});
  const today = dateOf(Date.now() / 1000);
  const range = useMemo(() => rangeOf(chosen, startOf(today)), [chosen, today]);
  const limit = (value: number | string | null) => value ?? w.byDefault;
  const suspend = account.suspended ? w.resume : w.suspend;
  const titles = { grant: w.grantTo, change: w.changeOf, suspend: suspend.of };
  const close = () => setOpen(null);
  return (
    <>
      <PageHead title={<><span className={`foreign ${css.accountname}`} title={account.name}>{account.name.slice(0, 200)}</span> {account.suspended && <Badge tone="bad">{w.suspended}</Badge>}</>} lead={<Code text={account.id} />}>
        {may && <Button variant="main" onClick={() => setOpen('grant')}>{w.grant}</Button>}
        {may && <Button onClick={() => setOpen('change')}>{w.change}</Button>}
        <Link className="button" to="/operator" search={{ account: account.id, stuck: 'all' }}>{w.tasksOf}</Link>
        <Link className="button" to="/operator/audit" search={{ account: account.id }}>{w.audit}</Link>
        {may && <Button variant={account.suspended ? 'plain' : 'danger'} onClick={() => setOpen('suspend')}>{suspend.do}</Button>}
      </PageHead>
      <div className="stack">
        {said}
        <div className="columns">
          <section className="card">
            <h2>{w.money}</h2>
            <Facts
              rows={[
                [w.available, <Amount value={account.available} currency={currency} />],
                [w.held, <Amount value={account.held} currency={currency} />],
                [w.spent, <Amount value={account.spent} currency={currency} />],
                account.abandoned && account.abandoned.jobs > 0 && [w.abandoned, <>{account.abandoned.jobs} · <Amount value={account.abandoned.cost} currency={currency} /></>],
              ]}
            />
          </section>
          <section className="card">
            <h2>{w.limits}</h2>
            <Facts
              rows={[
                [w.group, <Foreign text={account.group || words.ui.none} />],
                [w.limit.rate, limit(account.rate)],
                [w.limit.in_flight, limit(account.in_flight)],
                [w.limit.unpaid, account.unpaid === null ? w.byDefault : <Amount value={account.unpaid} currency={currency} />],
                [w.limit.uploads_per_day, limit(account.uploads_per_day)],
              ]}
            />
          </section>
        </div>
        <section aria-labelledby="keys">
          <h2 id="keys">{words.keys.title}</h2>
          <KeyList path="/admin/v1/keys" createAt={`${path}/keys`} account={account.id} own={null} currency={currency} />
        </section>
        <Statement path={`${path}/statement`} name={`statement-${account.id}`} range={range} currency={currency} taskPage="/operator/tasks/$id">
          <Period range={range} fault={() => null} onChange={choose} />
        </Statement>
        <section aria-labelledby="entries" className="stack">
          <div className={`row ${css.spread}`}>
            <h2 id="entries">{w.ledger}</h2>
            <Button disabled={entries.isPending} onClick={() => entries.mutate()}>{w.downloadCSV}</Button>
          </div>
          <Problem error={ledger.error ?? entries.error} />
          <LedgerTable entries={ledger.data?.pages.flatMap((p) => p.data) ?? []} currency={currency} withTask />
          {ledger.hasNextPage && <Button disabled={ledger.isFetching} onClick={() => void ledger.fetchNextPage()}>{words.shell.more}</Button>}
        </section>
      </div>
      <Dialog open={open !== null} title={open && <span className="foreign">{titles[open](account.name.slice(0, 80))}</span>} onClose={close}>
        {open === 'grant' && <Grant path={path} account={account} onDone={close} onCancel={close} />}
        {open === 'change' && <Change account={account} path={path} onDone={close} onCancel={close} />}
        {open === 'suspend' && <Suspend account={account} path={path} onDone={(text) => (close(), say(text, account.suspended ? 'good' : 'warn'))} onCancel={close} />}
      </Dialog>
    </>
  );
}

function useChange(id: string, send: () => Promise<unknown>, onDone: () => void) {
  return useMutation({
    mutationFn: send,
    onSuccess: async () => {
      await Promise.all([queryClient.invalidateQueries({ queryKey: queryKeys.adminAccount(id) }), queryClient.invalidateQueries({ queryKey: queryKeys.adminLedger(id) })]);
      onDone();
    },
  });
}

/** Larger grants need a second click. The bound is in units of the currency. */
const muchMoney = 1000;

interface Asked {
  account: Account;
  path: string;
  onCancel: () => void;
}

function Grant({ path, account: { id, name }, onDone, onCancel }: Asked & { onDone: () => void }) {
  const { currency } = useSession();
  const [amount, setAmount] = useState('');
  // The amount that the second question is about. A changed amount needs the question again.
  const [asked, setAsked] = useState('');
  const isMuch = Math.abs(Number(amount)) > muchMoney;
  const isAsked = isMuch && asked === amount.trim();
  // Each form makes one reference, so a grant that is sent twice counts once.
  const [reference, setReference] = useState(() => `console-${new Date().toISOString()}`);
  const give = useChange(id, () => call('POST', `${path}/grants`, { body: { amount: amount.trim(), reference } }), onDone);
  const fault = faults(give.error, ['amount', 'reference']);
  return (
    <form className="stack" onSubmit={(e) => (e.preventDefault(), isMuch ? setAsked(amount.trim()) : give.mutate())}>
      <Field label={w.amountIn(currency)} hint={w.grantHint} inputMode="decimal" required value={amount} error={fault.at('amount')} onChange={(e) => setAmount(e.target.value)} />
      <Field label={w.field.reference} hint={w.referenceHint} required value={reference} error={fault.at('reference')} onChange={(e) => setReference(e.target.value)} />
      <Problem error={fault.elsewhere} />
      <div className="row">
        <Button type="submit" variant={isAsked ? 'plain' : 'main'} disabled={give.isPending || isAsked || amount.trim() === ''}>{w.grant}</Button>
        <Button onClick={onCancel}>{words.ui.cancel}</Button>
      </div>
      {/* The second button is below the first one, so that a double click grants nothing. */}
      <div role="status">
        {isAsked && (
          <div className="note warn stack">
            <p>{w.grantSure(formatAmount(amount, currency), name.slice(0, 80), formatAmount(muchMoney, currency))}</p>
            <div>
              <Button variant="main" disabled={give.isPending} onClick={() => give.mutate()}>{w.grantYes(formatAmount(amount, currency))}</Button>
            </div>
          </div>
        )}
      </div>
    </form>
  );
}

/** The form that suspends or resumes the account. */
function Suspend({ account, path, onDone, onCancel }: Asked & { onDone: (said: string) => void }) {
  const [reason, setReason] = useState('');
  const text = account.suspended ? w.resume : w.suspend;
  const send = () => call('PATCH', path, { body: { suspended: !account.suspended, reason: reason.trim() } });
  const change = useChange(account.id, send, () => onDone(text.done(account.name.slice(0, 80))));
  const fault = faults(change.error, ['reason']);
  return (
    <form className="stack" onSubmit={(e) => (e.preventDefault(), change.isPending || change.mutate())}>
      <p>{text.hint}</p>
      <Field label={w.reason} hint={w.reasonHint} error={fault.at('reason')} required autoComplete="off" maxLength={mostReason} value={reason} onChange={(e) => setReason(e.target.value)} />
      <Problem error={fault.elsewhere} />
      <div className="row">
        <Button type="submit" variant={account.suspended ? 'main' : 'danger'} disabled={reason.trim() === ''}>{change.isPending ? w.sending : text.do}</Button>
        <Button onClick={onCancel}>{words.ui.cancel}</Button>
      </div>
    </form>
  );
}

const limits = ['rate', 'in_flight', 'unpaid', 'uploads_per_day'] as const;

function Change({ account, path, onDone, onCancel }: Asked & { onDone: () => void }) {
  const [name, setName] = useState(account.name);
  const [group, setGroup] = useState(account.group);
  const [values, setValues] = useState(() => Object.fromEntries(limits.map((l) => [l, account[l] === null ? '' : String(account[l])])) as Record<(typeof limits)[number], string>);
  const valueOf = (l: (typeof limits)[number]) => (values[l].trim() === '' ? null : l === 'unpaid' ? values[l].trim() : Number(values[l]));
  const changed = limits.filter((l) => valueOf(l) !== account[l]);
  const change = useChange(
    account.id,
    () =>
      call('PATCH', path, {
        body: { ...(name !== account.name && { name }), ...(group !== account.group && { group }), ...Object.fromEntries(changed.map((l) => [l, valueOf(l)])) },
      }),
    onDone,
  );
  const fault = faults(change.error, ['name', 'group', ...limits]);
  return (
    <form className="stack" onSubmit={(e) => (e.preventDefault(), change.mutate())}>
      <Field label={w.name} required value={name} error={fault.at('name')} onChange={(e) => setName(e.target.value)} />
      <Field label={w.group} hint={w.groupHint} value={group} error={fault.at('group')} onChange={(e) => setGroup(e.target.value)} />
      {limits.map((l) => (
        <Field key={l} label={w.limit[l]} hint={w.limitHint[l]} inputMode="decimal" value={values[l]} error={fault.at(l)} onChange={(e) => setValues({ ...values, [l]: e.target.value })} />
      ))}
      <Problem error={fault.elsewhere} />
      <div className="row">
        <Button type="submit" variant="main" disabled={change.isPending}>{w.save}</Button>
        <Button onClick={onCancel}>{words.ui.cancel}</Button>
      </div>
    </form>
  );
}
