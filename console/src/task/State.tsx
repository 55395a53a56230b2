// The state, progress, cost and failure of a task.
import type { Source, Task } from '../api/types';
import { useSession } from '../session';
import { Amount, Badge, formatDuration, useNow, type Tone } from '../ui';
import { words } from '../words';
import { Foreign } from './Foreign';
import { isOpen } from './useTask';
import css from './task.module.css';

const w = words.task;

const tones: Record<Source['status'], Tone> = { pending: 'neutral', processing: 'busy', completed: 'good', failed: 'bad', cancelled: 'neutral', erased: 'neutral' };

/** The state of a task, also of an erased one. */
export function StatusBadge({ status }: { status: Source['status'] }) {
  return <Badge tone={tones[status]}>{status === 'erased' ? w.chain.erased : w.status[status]}</Badge>;
}

export function StateBadge({ task, waits = false }: { task: Task; waits?: boolean }) {
  if (isOpen(task) && task.cancel_requested) return <Badge tone="warn">{w.cancelling}</Badge>;
  if (isOpen(task) && waits) return <Badge tone="warn">{w.modal.badge}</Badge>;
  return <StatusBadge status={task.status} />;
}

/** What the task costs: the hold while it is open, the charge after its end. */
export function Money({ task }: { task: Task }) {
  const { currency } = useSession();
  if (isOpen(task)) return <span>{w.holds} <Amount value={task.estimated_cost} currency={currency} /></span>;
  if (task.cost === 0) return <span>{w.notCharged}</span>;
  return <Amount value={task.cost} currency={currency} />;
}

/** Formats a duration that may be shorter than a second. */
export function shortDuration(seconds: number): string {
  return seconds < 10 ? `${seconds.toFixed(1)} s` : formatDuration(seconds);
}

/** The duration of an ended task. */
export function Took({ task }: { task: Task }) {
  if (isOpen(task) || task.actual_time === undefined) return null;
  return <span className="soft">{w.took(shortDuration(task.actual_time))}</span>;
}

/** The progress of an open task, with its usual duration. */
export function Progress({ task }: { task: Task }) {
  const now = useNow();
  const elapsed = Math.max(0, now - task.created);
  const usual = task.estimated_time;
  return (
    <div className={css.taskprogress}>
      <progress aria-label={w.progress} max={100} value={task.progress} />
      <p className="row">
        <span>{task.progress} %</span>
        <span className="soft">{usual ? w.elapsedOf(formatDuration(elapsed), formatDuration(usual)) : w.elapsed(formatDuration(elapsed))}</span>
        {usual && elapsed > usual * 1.5 && <span className="soft">{w.late}</span>}
      </p>
      <p className="hint">{w.leave}</p>
    </div>
  );
}

/** Why the task failed, and what to do about it. */
export function FailureNote({ task }: { task: Task }) {
  if (!task.error) return null;
  const { code, message, retryable } = task.error;
  return (
    <div className={`note bad ${css.failure}`}>
      <p>
        <strong>{w.failure[code]?.title ?? code}</strong>
      </p>
      <Foreign text={message} />
      <p>{w.failure[code]?.advice ?? (retryable ? w.retry : w.noRetry)}</p>
      <p className="hint">{w.notCharged} · <span className="mono">{code}</span></p>
    </div>
  );
}
