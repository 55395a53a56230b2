// The audit: a table of the changes that operators and keys made, with filters.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { call, faults } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { AuditEntry } from '../../api/admin';
import type { List } from '../../api/types';
import { Button, Empty, Field, Loading, PageHead, Problem, Select, Table, Time, Typed, usePageTitle } from '../../ui';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';
import { shifted } from '../usage/tasks';
import { changesOf, reasonOf, type Change } from './changes';
import css from './operator.module.css';

const w = operatorWords;
const filters = ['action', 'by', 'object', 'account', 'from', 'to'] as const;
type Filter = (typeof filters)[number];

export function Audit() {
  usePageTitle(w.audit);
  const search = useSearch({ from: '/frame/operator/audit' });
  const query = { ...search, to: dayAfter(search.to), limit: 50 };
  const { data, error } = useQuery({
    queryKey: queryKeys.audit(query),
    queryFn: ({ signal }) => call<List<AuditEntry>>('GET', '/admin/v1/audit', { query, signal }),
    placeholderData: keepPreviousData,
  });
  const fault = faults(error, filters);
  const filtered = filters.some((name) => search[name] !== undefined);
  return (
    <>
      <PageHead title={w.audit} lead={w.auditLead} />
      <div className="stack">
        <Filters filtered={filtered} fault={fault.at} />
        <Problem error={fault.elsewhere} />
        {!data && !error && <Loading />}
        {data?.data.length === 0 && <Empty title={filtered ? w.noAuditMatches : w.noAudit} />}
        {data && data.data.length > 0 && (
          <div className={css.oprows}>
            <Table cards label={w.audit} head={[w.at, w.by, w.did, w.object, w.reason, w.became]}>
              {data.data.map((e) => (
                <Row key={e.id} entry={e} />
              ))}
            </Table>
          </div>
        )}
        {data?.has_more && (
          <p>
            <Link to="/operator/audit" search={(s) => ({ ...s, after: data.data.at(-1)!.id })} className="button">
              {words.shell.more}
            </Link>
          </p>
        )}
      </div>
    </>
  );
}

/** The end of a range, which the API excludes, for the last day that the filter includes. Both are days in UTC. */
function dayAfter(date: string | undefined): string | undefined {
  if (!date || !/^\d{4}-\d\d-\d\d$/.test(date)) return date;
  return shifted(date, 1);
}

function Filters({ filtered, fault }: { filtered: boolean; fault: (name: Filter) => string | null }) {
  const search = useSearch({ from: '/frame/operator/audit' });
  const navigate = useNavigate({ from: '/operator/audit' });
  const set = (name: Filter, value: string) => void navigate({ search: (s) => ({ ...s, [name]: value.trim() || undefined, after: undefined }), replace: true });
  const typed = (name: 'by' | 'object' | 'account', label: string, hint: string) => (
    <Typed label={label} placeholder={hint} value={search[name] ?? ''} error={fault(name)} onChange={(value) => set(name, value)} />
  );
  const day = (name: 'from' | 'to', label: string) => <Field label={label} error={fault(name)} type="date" value={search[name] ?? ''} onChange={(e) => set(name, e.target.value)} />;
  const actions = Object.entries(w.auditAction).map(([value, label]) => ({ value, label: label! }));
  return (
    <form className={css.opfilters} aria-label={w.filters} onSubmit={(e) => e.preventDefault()}>
      <Select label={w.did} value={search.action ?? ''} error={fault('action')} onChange={(e) => set('action', e.target.value)} options={[{ value: '', label: w.any }, ...actions]} />
      {typed('by', w.by, w.byHint)}
      {typed('object', w.object, w.objectHint)}
      {typed('account', w.field.account, w.accountHint)}
      {day('from', words.tasks.from)}
      {day('to', words.tasks.to)}
      {filtered && (
        <Button variant="quiet" onClick={() => void navigate({ search: {} })}>
          {words.tasks.reset}
        </Button>
      )}
    </form>
  );
}

function Row({ entry }: { entry: AuditEntry }) {
  return (
    <tr>
      <td className="nowrap">
        <Time unix={entry.at} seconds />
      </td>
      <td>
        <Thing id={entry.by} name={entry.by_name} />
        {entry.address && <p className="soft mono">{entry.address}</p>}
      </td>
      <th scope="row">{w.auditAction[entry.action] ?? entry.action}</th>
      <td className={css.wide}>
        <Thing id={entry.object} name={entry.object_name} />
        {entry.account && entry.account !== entry.object && <Thing id={entry.account} name={entry.account_name} />}
      </td>
      <td className={`${css.wide} foreign`}>{reasonOf(entry) || words.ui.none}</td>
      <td className={css.wide}>
        <Changes changes={changesOf(entry)} />
      </td>
    </tr>
  );
}

/** The target or the actor of a change: its name and its id, with a link if the console has a page about it. */
function Thing({ id, name }: { id: string; name: string | null }) {
  const text = <span className={name ? 'foreign' : 'mono foreign'}>{(name ?? id).slice(0, 80)}</span>;
  return (
    <div className={css.thing}>
      {id.startsWith('task_') ? (
        <Link to="/operator/tasks/$id" params={{ id }}>
          {text}
        </Link>
      ) : id.startsWith('acc_') ? (
        <Link to="/operator/accounts/$id" params={{ id }}>
          {text}
        </Link>
      ) : (
        text
      )}
      {name && <p className={`soft mono ${css.code2}`}>{id}</p>}
    </div>
  );
}

/** The changed fields, each with its old and its new value. */
function Changes({ changes }: { changes: readonly Change[] }) {
  if (changes.length === 0) return <>{words.ui.none}</>;
  return (
    <dl className={css.changes}>
      {changes.map(({ field, was, is }) => (
        <div key={field}>
          <dt>{field}</dt>
          <dd className="foreign" dir="auto">
            {was !== undefined && (
              <>
                <del>{was}</del>
                <span aria-hidden="true"> → </span>
              </>
            )}
            <ins>{is ?? words.ui.none}</ins>
          </dd>
        </div>
      ))}
    </dl>
  );
}
