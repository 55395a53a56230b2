// The events of a task in their order.
import type { ReactNode } from 'react';
import type { Task } from '../../api/types';
import { wasTaken } from '../../task/callback';
import { shortDuration } from '../../task/State';
import { filesOf, isOpen } from '../../task/useTask';
import { Time, useNow, zoneName, type Tone } from '../../ui';
import { words } from '../../words';
import { useDeliveries } from './Callback';
import css from './tasks.module.css';

const w = words.task.page;

interface Moment {
  at: number;
  text: ReactNode;
  more?: ReactNode;
  tone: Tone;
  coming?: boolean;
}

export function Timeline({ task }: { task: Task }) {
  const deliveries = useDeliveries(task);
  const now = useNow(10_000);
  const moments: Moment[] = [{ at: task.created, text: w.submitted, tone: 'neutral' }];
  if (!isOpen(task) && task.completed) {
    moments.push({
      at: task.completed,
      text: w.ended[task.status as keyof typeof w.ended],
      more: task.actual_time === undefined ? null : words.task.took(shortDuration(task.actual_time)),
      tone: task.status === 'completed' ? 'good' : task.status === 'failed' ? 'bad' : 'neutral',
    });
  }
  for (const d of deliveries?.data ?? []) {
    const text = wasTaken(d) ? w.attemptOk(d.status ?? 0) : d.status === null ? w.attemptFailed : w.attemptRefused(d.status);
    moments.push({ at: d.at, text, more: d.error?.slice(0, 200), tone: wasTaken(d) ? 'good' : 'bad' });
  }
  const next = deliveries?.data.at(-1)?.next_attempt_at;
  if (next && next > now) moments.push({ at: next, text: w.nextAttempt, tone: 'busy', coming: true });
  const file = filesOf(task)[0];
  if (file) moments.push(file.expires_at > now ? { at: file.expires_at, text: w.linksUntil, more: w.linksHint, tone: 'neutral', coming: true } : { at: file.expires_at, text: w.filesGone, tone: 'neutral' });
  return (
    <section className="card" aria-labelledby="timeline">
      <h2 id="timeline">
        {w.timeline} <span className="hint">{zoneName()}</span>
      </h2>
      <ol className={css.timeline}>
        {moments
          .sort((a, b) => a.at - b.at)
          .map((m, i) => (
            <li key={i} className={`${m.tone} ${m.coming ? css.coming : ''}`}>
              <span>{m.text}</span>
              <Time unix={m.at} seconds />
              {m.more && <span className="hint foreign">{m.more}</span>}
            </li>
          ))}
      </ol>
    </section>
  );
}
