// The account's tasks as a list or a gallery. The URL holds the filters and the page.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useRef } from 'react';
import { call } from '../../api/client';
import { useKeyNames } from '../../api/keyNames';
import { queryKeys } from '../../api/queryKeys';
import type { Task, TaskList } from '../../api/types';
import { useSession } from '../../session';
import { Poster } from '../../task/Poster';
import { Repeat } from '../../task/Repeat';
import { operationTitle } from '../../task/request';
import { shortDuration, StateBadge } from '../../task/State';
import { isOpen, putTask, shortId } from '../../task/useTask';
import { Ago, Amount, Empty, Loading, PageHead, Problem, Table, formatAmount, usePageTitle } from '../../ui';
import { words } from '../../words';
import { Filters, faultOf, filtersOf, queryOf } from './Filters';
import css from './tasks.module.css';

const w = words.tasks;

export function Tasks() {
  usePageTitle(w.title);
  const search = useSearch({ from: '/frame/tasks' });
  const gallery = search.view === 'gallery';
  const query = { ...queryOf(search), after: search.after, prompt: true, limit: gallery ? 24 : 50 };
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: queryKeys.taskList(query),
    queryFn: async ({ signal }) => {
      const list = await call<TaskList>('GET', '/v1/tasks', { query, signal });
      list.data.forEach(putTask);
      return list;
    },
    placeholderData: keepPreviousData,
    refetchInterval: (q) => (q.state.data?.data.some(isOpen) ? 4_000 : false),
  });
  const filtered = Object.keys(filtersOf(search)).length > 0;
  return (
    <>
      <PageHead title={w.title} lead={w.lead}>
        <Views gallery={gallery} />
      </PageHead>
      <div className="stack">
        <Filters search={search} error={error} />
        {!data && !faultOf(error) && <Problem error={error} />}
        {!data && !error && <Loading />}
        {data && !isPlaceholderData && <News key={JSON.stringify(query)} list={data} />}
        {data && data.data.length > 0 && (gallery ? <Gallery tasks={data.data} /> : <List tasks={data.data} />)}
        {data?.data.length === 0 && <Nothing filtered={filtered} older={search.after !== undefined} />}
        {data && <Pages list={data} after={search.after} />}
      </div>
    </>
  );
}

function Views({ gallery }: { gallery: boolean }) {
  const navigate = useNavigate({ from: '/tasks' });
  return (
    <fieldset className={css.views}>
      <legend className="sr">{w.view}</legend>
      {[false, true].map((g) => (
        <label key={String(g)}>
          <input type="radio" name="view" checked={gallery === g} onChange={() => void navigate({ search: (s) => ({ ...s, view: g ? 'gallery' : undefined, after: undefined }) })} />
          <span>{g ? w.gallery : w.list}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** Tells screen readers that there are new tasks since the page was opened. */
function News({ list }: { list: TaskList }) {
  const first = useRef(list.first_id);
  const n = list.data.findIndex((task) => task.id === first.current);
  return (
    <p role="status" className="sr">
      {n > 0 ? w.newer(n) : ''}
    </p>
  );
}

function Cost({ task }: { task: Task }) {
  const { currency } = useSession();
  if (isOpen(task)) return <span className="soft">{w.hold(formatAmount(task.estimated_cost ?? 0, currency))}</span>;
  return <Amount value={task.cost} currency={currency} />;
}

// Why the task failed, if it did.
function Reason({ task }: { task: Task }) {
  if (!task.error) return null;
  return (
    <span className={`${css.reason} soft`} title={task.error.message}>
      {words.task.failure[task.error.code]?.title ?? task.error.code}
    </span>
  );
}

function List({ tasks }: { tasks: Task[] }) {
  const { nameOf } = useKeyNames();
  return (
    <div className={css.tasklist}>
      <Table cards label={w.title} head={[w.task, w.state, w.cost, w.duration, w.created, w.key, w.reference, words.ui.actions]}>
        {tasks.map((task) => (
          <tr key={task.id}>
            <th scope="row">
              <Link to="/tasks/$id" params={{ id: task.id }} className="foreign" aria-label={w.open(task.model.slice(0, 80), shortId(task.id))}>
                {task.model.slice(0, 80)}
              </Link>
              <span className={`foreign soft ${css.prompt}`} dir="auto" title={task.prompt}>
                {task.prompt ?? operationTitle(task)}
              </span>
            </th>
            <td>
              <span className="nowrap">
                <StateBadge task={task} /> {isOpen(task) && <span className="soft">{w.progress(task.progress)}</span>}
              </span>
              <Reason task={task} />
            </td>
            <td className="nowrap" data-label={w.cost}>
              <Cost task={task} />
            </td>
            <td className="nowrap" data-label={w.duration}>
              {task.actual_time === undefined ? words.ui.none : shortDuration(task.actual_time)}
            </td>
            <td className="nowrap">
              <Ago unix={task.created} />
            </td>
            <td className={`foreign ${css.keyname}`} title={task.key} data-label={w.key}>
              {task.key && nameOf(task.key)}
            </td>
            <td className={`foreign ${css.reference}`} dir="auto" title={task.reference} data-label={w.reference}>
              {task.reference}
            </td>
            <td className="nowrap">
              <Repeat task={task} listed />
            </td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

function Gallery({ tasks }: { tasks: Task[] }) {
  return (
    <ul className={css.gallery}>
      {tasks.map((task) => (
        <li key={task.id} className={css.tile}>
          <Link to="/tasks/$id" params={{ id: task.id }} className={css.tilelink}>
            <span className={css.poster}>
              <Poster task={task} />
            </span>
            <span className={css.tilehead}>
              <span className="foreign strong">{task.model.slice(0, 80)}</span>
              {task.status !== 'completed' && <StateBadge task={task} />}
            </span>
            <span className={`${css.tilefoot} soft`}>
              <Ago unix={task.created} />
              {task.actual_time !== undefined && <span>{shortDuration(task.actual_time)}</span>}
              <Cost task={task} />
            </span>
            <span className={`foreign ${css.tileprompt}`} dir="auto">
              {task.prompt ?? operationTitle(task)}
            </span>
            {task.reference && (
              <span className={`foreign soft ${css.tileref}`} dir="auto">
                {task.reference}
              </span>
            )}
          </Link>
          <div className={css.tileacts}>
            <Repeat task={task} listed />
          </div>
        </li>
      ))}
    </ul>
  );
}

function Nothing({ filtered, older }: { filtered: boolean; older: boolean }) {
  if (older) return <Empty title={w.oldest} />;
  if (filtered) return <Empty title={w.noMatch} />;
  return (
    <Empty title={w.none}>
      <p>{w.noneHint}</p>
      <Link to="/playground">{w.toPlayground}</Link>
    </Empty>
  );
}

function Pages({ list, after }: { list: TaskList; after: string | undefined }) {
  if (!after && !list.has_more) return null;
  return (
    <nav className="row" aria-label={w.pages}>
      {after && (
        <Link from="/tasks" to="." search={(s) => ({ ...s, after: undefined })} className="button">
          {words.shell.newest}
        </Link>
      )}
      {list.has_more && list.last_id && (
        <Link from="/tasks" to="." search={(s) => ({ ...s, after: list.last_id ?? undefined })} className="button">
          {words.shell.more}
        </Link>
      )}
    </nav>
  );
}
