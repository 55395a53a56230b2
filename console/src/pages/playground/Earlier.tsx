// A strip of the account's last results with a model. Each can be shown beside the others.
import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { Task, TaskList } from '../../api/types';
import { Poster } from '../../task/Poster';
import { operationTitle } from '../../task/request';
import { putTask, shortId, taskQuery } from '../../task/useTask';
import { words } from '../../words';
import css from './playground.module.css';

const w = words.playground;

/** The account's last tasks with a model. */
export function useEarlier(model: string): Task[] | undefined {
  const { data } = useQuery({
    queryKey: queryKeys.earlier(model),
    queryFn: async ({ signal }) => {
      const list = await call<TaskList>('GET', '/v1/tasks', { query: { model, prompt: true, limit: 20 }, signal });
      list.data.forEach(putTask);
      return list.data;
    },
  });
  return data;
}

export function Earlier({ model, shown, onShow }: { model: string; shown: string[]; onShow: (task: string) => void }) {
  const data = useEarlier(model);
  const others = data?.filter((task) => !shown.includes(task.id)) ?? [];
  if (others.length === 0) return null;
  return (
    <section aria-labelledby="earlier">
      <h2 id="earlier">{w.earlier}</h2>
      <ul className={css.strip}>
        {others.map((task) => (
          <li key={task.id}>
            <Small task={task} onShow={onShow} />
          </li>
        ))}
      </ul>
    </section>
  );
}

// The picture follows the cache, which other parts of the page keep up to date, and sends no request itself.
function Small({ task: listed, onShow }: { task: Task; onShow: (task: string) => void }) {
  const { data: task = listed } = useQuery({ ...taskQuery(listed.id), enabled: false });
  return (
    <button type="button" className={css.small} title={listed.prompt ?? operationTitle(listed)} aria-label={w.showEarlier(listed.prompt?.slice(0, 80) ?? `${operationTitle(listed)} ${shortId(task.id)}`, words.task.status[task.status])} onClick={() => onShow(task.id)}>
      <Poster task={task} small />
    </button>
  );
}
