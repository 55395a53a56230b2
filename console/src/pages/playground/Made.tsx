// One task of the playground with its result. Several stand side by side.
import { useQueries, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useRef } from 'react';
import type { Request } from '../../requests';
import { Cancel } from '../../task/Cancel';
import { operationTitle, promptOf, requestQuery } from '../../task/request';
import { TaskView } from '../../task/TaskView';
import { isOpen, shortId, taskQuery } from '../../task/useTask';
import { Button } from '../../ui';
import { words } from '../../words';
import css from './playground.module.css';

const w = words.playground;

interface Props {
  id: string;
  busy: boolean;
  /** Undefined for keys without the scope "generate". */
  onAgain: ((request: Request) => void) | undefined;
  onVary: ((id: string, request: Request) => void) | undefined;
  onClose: (id: string) => void;
}

export function Made({ id, busy, onAgain, onVary, onClose }: Props) {
  const { data: task } = useQuery(taskQuery(id));
  const { data: request } = useQuery(requestQuery(id));
  const prompt = request ? promptOf(request.body)?.text : undefined;
  return (
    <div className="card stack">
      <div className={css.resulthead}>
        <p className={`foreign ${css.excerpt}`} dir="auto" title={prompt}>
          {prompt ?? (task && request ? operationTitle({ type: task.type, endpoint: 'custom_id' in request.body ? undefined : request.endpoint }) : shortId(id))}
        </p>
        <Button variant="quiet" onClick={() => onClose(id)} aria-label={w.hide(shortId(id))}>
          ✕
        </Button>
      </div>
      <TaskView id={id} />
      <div className="row">
        {onAgain && request?.endpoint && (
          <Button aria-disabled={busy} title={words.task.againHint} onClick={() => busy || onAgain(request)}>
            {words.task.again}
          </Button>
        )}
        {onVary && request && (
          <Button title={w.varyHint} onClick={() => onVary(id, request)}>
            {words.task.vary}
          </Button>
        )}
        {task && <Cancel task={task} />}
        <Link className="button" to="/tasks/$id" params={{ id }}>
          {w.openTask}
        </Link>
      </div>
    </div>
  );
}

/** The state of the tasks that were still open when this page first showed them; undefined if there were none. */
export function useOutcome(ids: string[]): 'running' | 'done' | undefined {
  const tasks = useQueries({ queries: ids.map(taskQuery) }).map((query) => query.data);
  const seenOpen = useRef(false);
  const running = tasks.some((task) => task && isOpen(task));
  if (running) seenOpen.current = true;
  if (running) return 'running';
  return seenOpen.current && tasks.length > 0 ? 'done' : undefined;
}
