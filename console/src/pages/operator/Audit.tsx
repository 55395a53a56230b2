// Who did what and when, as it was and as it became.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { AuditEntry } from '../../api/admin';
import type { List } from '../../api/types';
import { Foreign } from '../../task/Foreign';
import { Empty, Loading, PageHead, Problem, Table, Time, usePageTitle } from '../../ui';
import { words } from '../../words';
import '../../styles/operator.css';

const w = words.operator;

export function Audit() {
  usePageTitle(w.audit);
  const { after } = useSearch({ from: '/frame/operator/audit' });
  const { data, error } = useQuery({
    queryKey: queryKeys.audit(after),
    queryFn: ({ signal }) => call<List<AuditEntry>>('GET', '/admin/v1/audit', { query: { after, limit: 50 }, signal }),
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <PageHead title={w.audit} lead={w.auditLead} />
      <div className="stack">
        {!data && <Problem error={error} />}
        {!data && !error && <Loading />}
        {data?.data.length === 0 && <Empty title={w.noAudit} />}
        {data && data.data.length > 0 && (
          <Table label={w.audit} head={[w.at, w.by, w.did, w.object, w.became]}>
            {data.data.map((e) => (
              <tr key={e.id}>
                <td className="nowrap"><Time unix={e.at} /></td>
                <td>
                  <span className="mono foreign">{e.by}</span>
                  {e.address && <p className="soft mono">{e.address}</p>}
                </td>
                <th scope="row">{e.action}</th>
                <td className="mono foreign"><ObjectLink id={e.object} /></td>
                <td><Changes before={e.before} after={e.after} /></td>
              </tr>
            ))}
          </Table>
        )}
        {data?.has_more && <p><Link to="/operator/audit" search={{ after: data.data.at(-1)!.id }}>{words.shell.more}</Link></p>}
      </div>
    </>
  );
}

function ObjectLink({ id }: { id: string }) {
  if (id.startsWith('task_')) return <Link to="/operator/tasks/$id" params={{ id }}>{id}</Link>;
  if (id.startsWith('acc')) return <Link to="/operator/accounts/$id" params={{ id }}>{id}</Link>;
  return <>{id}</>;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/** What differs, field by field; all of it where it is no object. */
function Changes({ before, after }: { before: unknown; after: unknown }) {
  const was = isObject(before) ? before : {};
  const is = isObject(after) ? after : {};
  const lines = [...new Set([...Object.keys(was), ...Object.keys(is)])]
    .filter((name) => JSON.stringify(was[name]) !== JSON.stringify(is[name]))
    .map((name) => `${name}: ${name in was ? `${JSON.stringify(was[name])} → ` : ''}${name in is ? JSON.stringify(is[name]) : words.ui.none}`);
  if (lines.length === 0) return <>{words.ui.none}</>;
  return <Foreign text={lines.join('\n')} limit={240} />;
}
