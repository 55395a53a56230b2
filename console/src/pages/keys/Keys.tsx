import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/client';
import type { List, Model } from '../../api/types';
import { mayUse, useSession } from '../../session';
import { PageHead, usePageTitle } from '../../ui';
import { words } from '../../words';
import { KeyList } from './KeyList';

export { KeyForm } from './KeyForm';
export { KeyList } from './KeyList';

const w = words.keys;

export function Keys() {
  usePageTitle(w.title);
  const session = useSession();
  const models = useQuery({
    queryKey: ['models', 'ids'],
    queryFn: async ({ signal }) => (await call<List<Model>>('GET', '/v1/models', { signal })).data.map((model) => model.id),
    staleTime: 60_000,
    enabled: mayUse(session, 'read'),
  });
  return (
    <>
      <PageHead title={w.title} lead={w.lead} />
      {mayUse(session, 'manage') ? <KeyList path="/v1/keys" own={session.key} models={models.data} currency={session.currency} /> : <p className="note">{w.notAllowed}</p>}
    </>
  );
}
