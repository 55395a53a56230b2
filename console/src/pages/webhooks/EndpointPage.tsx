// One endpoint: its settings, its actions and its deliveries.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { ApiError, call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { WebhookSecret } from '../../api/types';
import { useSession } from '../../session';
import { Amount, Badge, Button, Check, Dialog, Facts, Loading, PageHead, Problem, Time, usePageTitle } from '../../ui';
import { words } from '../../words';
import { Deliveries } from './Deliveries';
import { EndpointForm } from './EndpointForm';
import { Health } from './Health';
import { NewSecret } from './NewSecret';
import { healthOf, path, type Delivery, type Endpoint } from './endpoints';

const w = words.webhooks;

type Open = 'change' | 'rotate' | 'delete' | { secret: string };

export function EndpointPage() {
  usePageTitle(w.title);
  const { id } = useParams({ from: '/frame/webhooks/$id' });
  const session = useSession();
  const client = useQueryClient();
  const navigate = useNavigate();
  const at = `${path}/${id}`;
  const [open, setOpen] = useState<Open | null>(null);
  const endpoint = useQuery({ queryKey: queryKeys.endpoint(id), queryFn: ({ signal }) => call<Endpoint>('GET', at, { signal }) });
  const changed = () => client.invalidateQueries({ queryKey: queryKeys.endpoints });
  const change = useMutation({
    mutationFn: (body: object) => call<Endpoint>('PATCH', at, { body }),
    onSuccess: () => {
      setOpen(null);
      return changed();
    },
  });
  const test = useMutation({ mutationFn: () => call<Delivery>('POST', `${at}/test`), onSuccess: changed });
  const remove = useMutation({
    mutationFn: () => call<void>('DELETE', at),
    onSuccess: async () => {
      await navigate({ to: '/webhooks' });
      await changed();
    },
  });
  const close = () => setOpen(null);
  const begin = (next: Open) => {
    for (const one of [change, remove]) one.reset();
    setOpen(next);
  };
  const e = endpoint.data;
  if (!e) {
    return (
      <div className="stack">
        <Problem error={endpoint.error} />
        {endpoint.isPending && <Loading />}
      </div>
    );
  }
  const health = healthOf(e);
  return (
    <div className="stack">
      <PageHead title={<span className="foreign">{e.url}</span>} lead={<span className="mono">{e.id}</span>}>
        <Button disabled={!e.enabled || test.isPending} onClick={() => test.mutate()}>
          {w.test}
        </Button>
        <Button disabled={change.isPending} onClick={() => change.mutate({ enabled: !e.enabled })}>
          {e.enabled ? w.disable : w.enable}
        </Button>
        <Button onClick={() => begin('change')}>{w.change}</Button>
        <Button onClick={() => begin('rotate')}>{words.account.rotate}</Button>
        <Button variant="danger" onClick={() => begin('delete')}>
          {w.remove}
        </Button>
      </PageHead>
      <p>
        <Link to="/webhooks">{w.all}</Link>
      </p>
      {open === null && <Problem error={change.error ?? test.error} />}
      {health !== 'enabled' && <p className={health === 'switchedOff' ? 'note' : 'note bad'}>{w.healthHint[health]}</p>}
      <section className="card">
        <Facts
          rows={[
            [w.state, <Health of={e} />],
            [w.events, <span className="row tight">{e.events.map((type) => <Badge key={type}>{type}</Badge>)}</span>],
            e.balance_low !== null && [w.bound, <Amount value={e.balance_low} currency={session.currency} />],
            e.description !== null && [w.description, <span className="foreign">{e.description}</span>],
            [w.created, <Time unix={e.created} />],
          ]}
        />
      </section>
      <Deliveries endpoint={e} />
      <Dialog open={open !== null} title={open === null ? '' : typeof open === 'object' ? w.madeTitle : <>{w.titles[open]} <span className="foreign soft">{e.url}</span></>} onClose={close} stays={typeof open === 'object'}>
        {open === 'change' && <EndpointForm change={e} currency={session.currency} busy={change.isPending} error={change.error} onSubmit={change.mutate} onCancel={close} />}
        {open === 'rotate' && <Rotation at={at} onDone={(made) => setOpen({ secret: made.secret })} onCancel={close} />}
        {open === 'delete' && (
          <div className="stack">
            <p>{w.removeWhat}</p>
            <Problem error={remove.error} />
            <div className="row">
              <Button variant="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
                {w.removeNow}
              </Button>
              <Button onClick={close}>{words.ui.cancel}</Button>
            </div>
          </div>
        )}
        {open !== null && typeof open === 'object' && <NewSecret secret={open.secret} onClose={close} />}
      </Dialog>
    </div>
  );
}

function Rotation({ at, onDone, onCancel }: { at: string; onDone: (made: WebhookSecret) => void; onCancel: () => void }) {
  const [force, setForce] = useState(false);
  const rotate = useMutation({ mutationFn: () => call<WebhookSecret>('POST', `${at}/secret`, { query: { force: force || undefined } }), onSuccess: onDone });
  const overlaps = rotate.error instanceof ApiError && rotate.error.status === 409;
  return (
    <form
      className="stack"
      onSubmit={(e) => {
        e.preventDefault();
        rotate.mutate();
      }}
    >
      <p>{words.account.rotateWhat}</p>
      {overlaps && (
        <>
          <p className="note warn">{words.account.forceWhy}</p>
          <Check label={words.account.force} checked={force} onChange={(e) => setForce(e.target.checked)} />
        </>
      )}
      {!overlaps && <Problem error={rotate.error} />}
      <div className="row">
        <Button type="submit" variant="main" disabled={rotate.isPending || (overlaps && !force)}>
          {words.account.rotateNow}
        </Button>
        <Button onClick={onCancel}>{words.ui.cancel}</Button>
      </div>
    </form>
  );
}
