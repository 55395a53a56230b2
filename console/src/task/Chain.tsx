// The neighbours of a task in its chain: the tasks whose files it uses, and the tasks that use its files.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { call } from '../api/client';
import { queryKeys } from '../api/queryKeys';
import type { Task, TaskList } from '../api/types';
import { words } from '../words';
import { Poster } from './Poster';
import { operationTitle } from './request';
import { groupSources, type SourceTask } from './sources';
import { StateBadge, StatusBadge } from './State';
import { isOpen, isUnknown, nextRead, putTask, shortId, taskQuery } from './useTask';
import css from './task.module.css';

const w = words.task.chain;

/** The sources of a task: the tasks whose files it uses and, for an art task, the task whose picture it continues. */
export function MadeFrom({ task, picture }: { task: Task; picture: string | undefined }) {
  const groups = groupSources(task.sources ?? []);
  if (picture) groups.push({ id: picture, status: 'completed', file: 0, fields: [] });
  if (groups.length === 0) return null;
  return (
    <section className="card" aria-labelledby="made-from">
      <h2 id="made-from">{w.madeFrom}</h2>
      <ul className={css.chain}>
        {groups.map((group) => (
          <li key={group.id}>
            <SourceOf {...group} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function SourceOf({ id, status, file, fields }: SourceTask) {
  const { data, error } = useQuery({
    ...taskQuery(id),
    enabled: status !== 'erased',
    refetchInterval: (q) => (q.state.data && isOpen(q.state.data) ? 4_000 : nextRead(q.state.data)),
  });
  const more = fields.join(', ');
  if (data && !isUnknown(error)) return <Neighbour task={data} file={file} more={more} />;
  return (
    <div className={css.neighbour}>
      <span className={css.neighbourthumb} />
      <span className={css.neighbourtext}>
        <span className="mono">{shortId(id)}</span>
        <StatusBadge status={isUnknown(error) ? 'erased' : status} />
        <span className="hint">{more}</span>
      </span>
    </div>
  );
}

/** The tasks that use a file of this task, newest first. */
export function UsedBy({ task }: { task: Task }) {
  const query = { source: task.id, prompt: true, limit: 10 };
  const { data } = useQuery({
    queryKey: queryKeys.taskList(query),
    queryFn: async ({ signal }) => {
      const list = await call<TaskList>('GET', '/v1/tasks', { query, signal });
      list.data.forEach(putTask);
      return list;
    },
    refetchInterval: (q) => (q.state.data?.data.some(isOpen) ? 4_000 : false),
  });
  if (!data?.data.length) return null;
  return (
    <section className="card" aria-labelledby="used-by">
      <h2 id="used-by">{w.usedBy}</h2>
      <ul className={css.chain}>
        {data.data.map((user) => (
          <li key={user.id}>
            <Neighbour task={user} file={0} more={[user.prompt ?? operationTitle(user), ...groupSources((user.sources ?? []).filter((s) => s.task_id === task.id)).flatMap((g) => g.fields)].join(' · ')} />
          </li>
        ))}
      </ul>
      {data.has_more && (
        <Link to="/tasks" search={{ source: task.id }}>
          {w.all}
        </Link>
      )}
    </section>
  );
}

function Neighbour({ task, file, more }: { task: Task; file: number; more: string }) {
  return (
    <Link to="/tasks/$id" params={{ id: task.id }} className={css.neighbour}>
      <span className={css.neighbourthumb}>
        <Poster task={task} file={file} small />
      </span>
      <span className={css.neighbourtext}>
        <span className="foreign strong">{task.model.slice(0, 80)}</span>
        <StateBadge task={task} />
        <span className="hint">{more}</span>
      </span>
    </Link>
  );
}
