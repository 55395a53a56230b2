// The endpoints of the account: URLs that receive its events.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import { useSession } from '../../session';
import { Badge, Button, Dialog, Empty, Loading, PageHead, Problem, usePageTitle } from '../../ui';
import { words } from '../../words';
import { EndpointForm } from './EndpointForm';
import { Health } from './Health';
import { NewSecret } from './NewSecret';
import { endpointsQuery } from './query';
import { path, type bodyOf, type Endpoint } from './endpoints';
import css from './webhooks.module.css';

const w = words.webhooks;

const most = 10; // endpoints of an account

export function Webhooks() {
  usePageTitle(w.title);
  const session = useSession();
  const client = useQueryClient();
  const list = useQuery(endpointsQuery);
  const [open, setOpen] = useState<'form' | Endpoint | null>(null); // an endpoint: the new one, whose secret is shown
  const create = useMutation({
    mutationFn: (body: ReturnType<typeof bodyOf>) => call<Endpoint>('POST', path, { body }),
    onSuccess: (made) => {
      setOpen(made);
      return client.invalidateQueries({ queryKey: queryKeys.endpoints });
    },
  });
  const endpoints = list.data?.data ?? [];
  const close = () => setOpen(null);
  return (
    <>
      <PageHead title={w.title} lead={w.lead}>
        <Button
          variant="main"
          disabled={endpoints.length >= most}
          onClick={() => {
            create.reset();
            setOpen('form');
          }}
        >
          {w.create}
        </Button>
      </PageHead>
      <div className="stack">
        {!list.data && <Problem error={list.error} />}
        {list.isPending && <Loading />}
        {list.data && endpoints.length === 0 && <Empty title={w.empty}>{w.emptyHint}</Empty>}
        {endpoints.length >= most && <p className="soft">{w.full(most)}</p>}
        {endpoints.length > 0 && (
          <ul className={css.endpoints}>
            {endpoints.map((endpoint) => (
              <li key={endpoint.id} className={`card ${css.endpoint}`}>
                <div className={css.endpointhead}>
                  <h2>
                    <Link to="/webhooks/$id" params={{ id: endpoint.id }} className="foreign">
                      {endpoint.url}
                    </Link>
                  </h2>
                  <Health of={endpoint} />
                </div>
                {endpoint.description && <p className="soft foreign">{endpoint.description}</p>}
                <p className="row tight">
                  {endpoint.events.map((type) => (
                    <Badge key={type}>{type}</Badge>
                  ))}
                </p>
              </li>
            ))}
          </ul>
        )}
      </div>
      <Dialog open={open !== null} title={open === 'form' ? w.create : w.madeTitle} onClose={close} stays={open !== 'form'}>
        {open === 'form' && <EndpointForm currency={session.currency} busy={create.isPending} error={create.error} onSubmit={create.mutate} onCancel={close} />}
        {open !== null && open !== 'form' && <NewSecret secret={open.secret!} onClose={close} />}
      </Dialog>
    </>
  );
}
