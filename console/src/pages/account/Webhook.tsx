// The account's webhook, which is called for tasks whose request names no URL, and a test of it.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { components } from '../../api/openapi';
import { Badge, Button, Field, Problem } from '../../ui';
import { words } from '../../words';

const w = words.account;

type OwnAccount = components['schemas']['Account'];
type Test = components['schemas']['WebhookTest'];

export function Webhook() {
  const client = useQueryClient();
  const account = useQuery({ queryKey: queryKeys.account, queryFn: ({ signal }) => call<OwnAccount>('GET', '/v1/account', { signal }) });
  const kept = account.data?.webhook ?? '';
  const [typed, setTyped] = useState<string | null>(null); // null: the stored address
  const address = (typed ?? kept).trim();
  const save = useMutation({
    mutationFn: () => call<OwnAccount>('PATCH', '/v1/account', { body: { webhook: address || null } }),
    onSuccess: (changed) => {
      client.setQueryData(queryKeys.account, changed);
      setTyped(null);
    },
  });
  const test = useMutation({ mutationFn: (url: string) => call<Test>('POST', '/v1/webhooks/test', { body: { url } }) });
  const submit = (e: FormEvent) => {
    e.preventDefault();
    save.mutate();
  };
  return (
    <section className="card">
      <h2>{w.webhook}</h2>
      <p className="soft">{w.webhookHint}</p>
      <form className="stack" onSubmit={submit}>
        <Field label={w.webhookAddress} type="url" maxLength={2048} autoComplete="off" placeholder="https://" value={typed ?? kept} onChange={(e) => setTyped(e.target.value)} />
        <div className="row">
          <Button type="submit" variant="main" disabled={!account.data || address === kept || save.isPending}>
            {save.isPending ? words.keys.saving : words.keys.save}
          </Button>
          <Button disabled={address === '' || test.isPending} onClick={() => test.mutate(address)}>
            {w.webhookTest}
          </Button>
        </div>
      </form>
      <Problem error={account.error ?? save.error ?? test.error} />
      <p role="status">
        {test.data && (
          <>
            <Badge tone={test.data.delivered ? 'good' : 'bad'}>{test.data.delivered ? w.webhookTook : w.webhookDidNot}</Badge>{' '}
            <span className="foreign">{test.data.error ?? w.webhookAnswer(test.data.status ?? 0, test.data.duration_ms)}</span>
          </>
        )}
      </p>
    </section>
  );
}
