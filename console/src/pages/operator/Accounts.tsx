import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { call, faults } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { Account } from '../../api/admin';
import type { List } from '../../api/types';
import { useMay, useSession } from '../../session';
import { Ago, Amount, Badge, Button, Dialog, Empty, Field, Loading, PageHead, Problem, Right, Table, Typed, usePageTitle } from '../../ui';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';
import css from './operator.module.css';

const w = operatorWords;

export function Accounts() {
  usePageTitle(w.accountsTitle);
  const { currency } = useSession();
  const { q, after } = useSearch({ from: '/frame/operator/accounts' });
  const navigate = useNavigate({ from: '/operator/accounts' });
  const [creating, setCreating] = useState(false);
  const may = useMay('admin');
  const { data, error } = useQuery({
    queryKey: queryKeys.adminAccounts({ q, after }),
    queryFn: ({ signal }) => call<List<Account>>('GET', '/admin/v1/accounts', { query: { q, after, limit: 50 }, signal }),
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <PageHead title={w.accountsTitle}>
        {may && <Button variant="main" onClick={() => setCreating(true)}>{w.createAccount}</Button>}
      </PageHead>
      <div className={`${css.opfilters} ${css.opalone}`}>
        <Typed label={w.searchAccounts} value={q ?? ''} error={null} onChange={(text) => void navigate({ search: { q: text.trim() || undefined }, replace: true })} />
      </div>
      {!data && <Problem error={error} />}
      {!data && !error && <Loading />}
      {data?.data.length === 0 && <Empty title={q ? w.noAccountMatches : w.noAccounts} />}
      {data && data.data.length > 0 && (
        <Table cards label={w.accountsTitle} head={[w.name, w.group, <Right>{w.available}</Right>, <Right>{w.held}</Right>, <Right>{w.spent}</Right>, w.created]}>
          {data.data.map((a) => (
            <tr key={a.id}>
              <th scope="row">
                <Link to="/operator/accounts/$id" params={{ id: a.id }} className={`foreign ${css.accountname}`} title={a.name}>{a.name.slice(0, 120)}</Link>
                <p className="mono soft">{a.id}</p>
                {a.suspended && <Badge tone="bad">{w.suspended}</Badge>}
              </th>
              <td className="foreign" data-label={w.group}>{a.group}</td>
              <td className="number" data-label={w.available}><Amount value={a.available} currency={currency} /></td>
              <td className="number" data-label={w.held}><Amount value={a.held} currency={currency} /></td>
              <td className="number" data-label={w.spent}><Amount value={a.spent} currency={currency} /></td>
              <td data-label={w.created}><Ago unix={a.created} /></td>
            </tr>
          ))}
        </Table>
      )}
      {data?.has_more && <p><Link to="/operator/accounts" search={(s) => ({ ...s, after: data.data.at(-1)!.id })}>{words.shell.more}</Link></p>}
      <Dialog open={creating} title={w.createAccount} onClose={() => setCreating(false)}>
        {creating && <Create onCancel={() => setCreating(false)} />}
      </Dialog>
    </>
  );
}

function Create({ onCancel }: { onCancel: () => void }) {
  const [name, setName] = useState('');
  const [group, setGroup] = useState('');
  const navigate = useNavigate();
  const create = useMutation({
    mutationFn: () => call<Account>('POST', '/admin/v1/accounts', { body: { name: name.trim(), ...(group.trim() ? { group: group.trim() } : {}) } }),
    onSuccess: (account) => navigate({ to: '/operator/accounts/$id', params: { id: account.id } }),
  });
  const fault = faults(create.error, ['name', 'group']);
  return (
    <form className="stack" onSubmit={(e) => (e.preventDefault(), create.mutate())}>
      <Field label={w.name} required maxLength={255} value={name} error={fault.at('name')} onChange={(e) => setName(e.target.value)} />
      <Field label={w.group} hint={w.groupHint} value={group} error={fault.at('group')} onChange={(e) => setGroup(e.target.value)} />
      <Problem error={fault.elsewhere} />
      <div className="row">
        <Button type="submit" variant="main" disabled={create.isPending || name.trim() === ''}>{w.createAccount}</Button>
        <Button onClick={onCancel}>{words.ui.cancel}</Button>
      </div>
    </form>
  );
}
