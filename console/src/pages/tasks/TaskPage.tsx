// One task: its request and result, its timeline, its cost, and its callback.
import { useMutation } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { call } from '../../api/client';
import { useKeyNames } from '../../api/keyNames';
import { queryKeys } from '../../api/queryKeys';
import type { Task } from '../../api/types';
import { mayUse, queryClient, useSession } from '../../session';
import { Asked } from '../../task/Asked';
import { Cancel } from '../../task/Cancel';
import { MadeFrom, UsedBy } from '../../task/Chain';
import { Foreign } from '../../task/Foreign';
import { Repeat } from '../../task/Repeat';
import { Money } from '../../task/State';
import { TaskView } from '../../task/TaskView';
import { isOpen, isUnknown, useArt, useTask } from '../../task/useTask';
import { Amount, Button, Code, Dialog, Empty, Facts, Loading, PageHead, Problem, usePageTitle } from '../../ui';
import { words } from '../../words';
import { Callback } from './Callback';
import { Timeline } from './Timeline';
import css from './tasks.module.css';

const w = words.task.page;

export function TaskPage() {
  const { id } = useParams({ from: '/frame/tasks/$id' });
  const { data: task, error } = useTask(id);
  usePageTitle(task ? w.title(words.tasks.types[task.type], task.model.slice(0, 80)) : words.task.title);
  if (isUnknown(error))
    return (
      <>
        <PageHead title={words.task.title} />
        <Empty title={w.unknown}>
          <p>{w.unknownHint}</p>
          <Link to="/tasks">{w.toTasks}</Link>
        </Empty>
      </>
    );
  if (!task) return error ? <Problem error={error} /> : <Loading />;
  return <Page key={id} task={task} />;
}

function Page({ task }: { task: Task }) {
  const session = useSession();
  const art = useArt(task);
  const { nameOf } = useKeyNames();
  return (
    <>
      <PageHead title={<span className="foreign">{w.title(words.tasks.types[task.type], task.model.slice(0, 80))}</span>} lead={<Code text={task.id} />}>
        <Repeat task={task} />
        <Cancel task={task} />
        {!isOpen(task) && mayUse(session, 'manage') && <Remove task={task} />}
      </PageHead>
      <div className={css.taskpage}>
        <div className="stack">
          <TaskView id={task.id} />
          {task.webhook && <Callback task={task} />}
        </div>
        <div className="stack">
          <Asked task={task} />
          <MadeFrom task={task} picture={art?.source_task_id} />
          <UsedBy task={task} />
          <section className="card" aria-labelledby="facts">
            <h2 id="facts">{w.facts}</h2>
            <Facts
              rows={[
                task.reference ? [w.reference, <Foreign key="r" text={task.reference} />] : null,
                isOpen(task)
                  ? [w.held, <span key="h"><Amount value={task.estimated_cost} currency={session.currency} /> <span className="hint">{w.heldHint}</span></span>]
                  : [w.cost, <Money key="c" task={task} />],
                task.key !== undefined && [w.key, <span key="k" className="foreign" title={task.key}>{nameOf(task.key)}</span>],
                !isOpen(task) && [w.credits, <span key="cr" className="amount">{task.credits_cost.toLocaleString('en-GB')}</span>],
              ]}
            />
          </section>
          <Timeline task={task} />
        </div>
      </div>
    </>
  );
}

function Remove({ task }: { task: Task }) {
  const navigate = useNavigate();
  const [open, setOpen] = useState(false);
  const remove = useMutation({
    mutationFn: () => call<void>('DELETE', `/v1/tasks/${task.id}`),
    onSuccess: async () => {
      await navigate({ to: '/tasks' });
      queryClient.removeQueries({ queryKey: queryKeys.task(task.id) });
      void queryClient.invalidateQueries({ queryKey: queryKeys.tasks });
    },
  });
  return (
    <>
      <Button variant="danger" onClick={() => setOpen(true)}>{w.remove}</Button>
      <Dialog open={open} title={w.removeTitle} onClose={() => (setOpen(false), remove.reset())}>
        <div className="stack">
          <p>{w.removeText}</p>
          <p>{w.removeKept}</p>
          <Problem error={remove.error} />
          <div className="actions">
            <Button variant="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>{w.removeYes}</Button>
            <Button onClick={() => setOpen(false)}>{w.removeNo}</Button>
          </div>
        </div>
      </Dialog>
    </>
  );
}
