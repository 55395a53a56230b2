// A task with its state and progress, and its result when it has ended.
import { Loading, Problem } from '../ui';
import { words } from '../words';
import { ModalForm } from './ModalForm';
import { Result } from './Result';
import { waitsForSource } from './sources';
import { FailureNote, Money, Progress, StateBadge, Took } from './State';
import { UseAsInput } from './UseAsInput';
import { isOpen, isUnknown, shortId, useArt, useTask } from './useTask';
import type { Task } from '../api/types';
import css from './task.module.css';

export function TaskView({ id }: { id: string }) {
  const { data: task, error } = useTask(id);
  if (!task || isUnknown(error)) return error ? <Problem error={error} /> : <Loading />;
  return <View task={task} />;
}

function View({ task }: { task: Task }) {
  const art = useArt(task);
  const waits = art?.status === 'MODAL' && isOpen(task) && !task.cancel_requested;
  return (
    <section className="task stack" aria-label={words.task.named(shortId(task.id))}>
      <div className={css.taskhead}>
        <span role="status">
          <StateBadge task={task} waits={waits} />
        </span>
        <Took task={task} />
        <span className={css.taskmoney}>
          <Money task={task} />
        </span>
      </div>
      {isOpen(task) && !waits && (waitsForSource(task) ? <p className="note">{words.task.chain.waits}</p> : <Progress task={task} />)}
      {isOpen(task) && !task.cancel_requested && (task.type === 'video' || task.type === 'image') && (
        <p className="row">
          <UseAsInput task={task} />
          <span className="hint">{words.task.chain.coming}</span>
        </p>
      )}
      {waits && <ModalForm task={task} art={art} />}
      <FailureNote task={task} />
      {task.result && <Result task={task} />}
    </section>
  );
}
