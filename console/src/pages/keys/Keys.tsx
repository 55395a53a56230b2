import { useQuery } from '@tanstack/react-query';
import { modelsQuery } from '../../api/models';
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
    ...modelsQuery,
    select: (list) => list.data.map((model) => model.id),
    enabled: mayUse(session, 'read'),
  });
  return (
    <>
      <PageHead title={w.title} lead={w.lead} />
      <KeyList path="/v1/keys" own={session.key} models={models.data} currency={session.currency} />
    </>
  );
}
