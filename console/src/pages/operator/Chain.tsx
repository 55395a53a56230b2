// The tasks whose files a task uses, and the tasks that use its files. Operators see the ids and states,
// but not the files, which belong to the client.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { OperatorTask, Story } from '../../api/admin';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { List, Source } from '../../api/types';
import { groupSources } from '../../task/sources';
import { StateBadge, StatusBadge } from '../../task/State';
import { isOpen } from '../../task/useTask';
import { Table } from '../../ui';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';
import { TaskLink } from './parts';

const w = words.task.chain;

/** The tasks whose files this task uses. */
export function MadeFrom({ story }: { story: Story }) {
  const groups = groupSources(story.sources ?? []);
  if (groups.length === 0) return null;
  return (
    <Tasks title={w.madeFrom}>
      {groups.map(({ id, status, fields }) => (
        <Row key={id} id={id} badge={<StatusBadge status={status} />} fields={fields} linked={status !== 'erased'} />
      ))}
    </Tasks>
  );
}

/** The tasks that use a file of this task, newest first. */
export function UsedBy({ id }: { id: string }) {
  const query = { source: id, limit: 10 };
  const { data } = useQuery({
    queryKey: queryKeys.adminTaskList(query),
    queryFn: ({ signal }) => call<List<OperatorTask>>('GET', '/admin/v1/tasks', { query, signal }),
    refetchInterval: (q) => (q.state.data?.data.some(isOpen) ? 5_000 : false),
  });
  if (!data?.data.length) return null;
  const fieldsOf = (sources: readonly Source[] = []) => groupSources(sources.filter((s) => s.task_id === id)).flatMap((group) => group.fields);
  return (
    <Tasks title={w.usedBy}>
      {data.data.map((task) => (
        <Row key={task.id} id={task.id} badge={<StateBadge task={task} />} fields={fieldsOf(task.sources)} linked />
      ))}
      {data.has_more && (
        <tr>
          <td colSpan={3}>
            <Link to="/operator" search={{ stuck: 'all', source: id }}>
              {w.all}
            </Link>
          </td>
        </tr>
      )}
    </Tasks>
  );
}

function Tasks({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h2>{title}</h2>
      <Table cards label={title} head={[operatorWords.task, operatorWords.state, operatorWords.fields]}>
        {children}
      </Table>
    </section>
  );
}

function Row({ id, badge, fields, linked }: { id: string; badge: ReactNode; fields: readonly string[]; linked: boolean }) {
  return (
    <tr>
      <th scope="row">{linked ? <TaskLink id={id} /> : <span className="mono">{id}</span>}</th>
      <td data-label={operatorWords.state}>{badge}</td>
      <td className="mono" data-label={operatorWords.fields}>{fields.join(', ')}</td>
    </tr>
  );
}
