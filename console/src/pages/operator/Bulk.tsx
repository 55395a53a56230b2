// Bulk gives one command to all tasks that the page's filter selects. A preview counts the tasks that it
// would change and those that it would skip. Then a job starts, which Temporal's web interface can stop.
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import type { Action, JobStatus, Matched } from '../../api/admin';
import { call, faults, type Query } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import { queryClient, useMay } from '../../session';
import { Badge, Button, Code, Dialog, Facts, Field, Problem, Select } from '../../ui';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';
import { ChannelChoice, mostReason } from './Levers';
import { Elsewhere } from './parts';
import { previewOf, type SkippedBy } from './preview';
import css from './operator.module.css';

const w = operatorWords;

/** How many task ids the preview shows. */
const shown = 5;

export function Bulk({ filter }: { filter: Query }) {
  // The filter at the time when the dialog was opened. The page may change its filter meanwhile.
  const [open, setOpen] = useState<Query | null>(null);
  const given = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined && value !== ''));
  const none = Object.keys(given).length === 0;
  if (!useMay('operate')) return null;
  return (
    <>
      <Button disabled={none} title={none ? w.bulk.filterFirst : undefined} onClick={() => setOpen(given)}>
        {w.bulk.open}
      </Button>
      <Dialog open={open !== null} title={w.bulk.title} onClose={() => setOpen(null)}>
        {open && <Job filter={open} onClose={() => setOpen(null)} />}
      </Dialog>
    </>
  );
}

function Job({ filter, onClose }: { filter: Query; onClose: () => void }) {
  const [action, setAction] = useState<Action>('retry');
  const [reason, setReason] = useState('');
  const [channel, setChannel] = useState('');
  const [pace, setPace] = useState('10');
  const result = useRef<HTMLDivElement>(null);
  const body = { filter, action, reason: reason.trim(), per_second: Number(pace), ...(action === 'reroute' && channel ? { channel } : {}) };
  const count = useMutation({ mutationFn: () => call<Matched>('POST', '/admin/v1/tasks/actions', { body: { ...body, dry_run: true } }) });
  const begin = useMutation({
    mutationFn: () => call<Matched>('POST', '/admin/v1/tasks/actions', { body }),
    onSuccess: () => void queryClient.invalidateQueries({ queryKey: queryKeys.adminTasks }),
  });
  // The result replaces the form, which had the focus.
  useEffect(() => {
    if (begin.data) result.current?.focus();
  }, [begin.data]);
  // A preview is valid only for the values that it was made with, so any change removes it.
  const changed = <T,>(set: (value: T) => void) => (value: T) => {
    set(value);
    count.reset();
    begin.reset();
  };
  if (begin.data) return <Begun job={begin.data} box={result} onClose={onClose} />;
  const fault = faults(count.error ?? begin.error, ['reason', 'channel', 'per_second']);
  return (
    <form
      className="stack"
      onSubmit={(e) => {
        e.preventDefault();
        if (!count.isPending) count.mutate();
      }}
    >
      <p className="soft">{w.bulk.lead}</p>
      <pre className={`foreign ${css.bulkfilter}`} tabIndex={0} aria-label={w.filters}>
        {Object.entries(filter)
          .map(([name, value]) => `${name} = ${String(value)}`)
          .join('\n')}
      </pre>
      <Select
        label={w.bulk.action}
        hint={w.actionHint[action]}
        value={action}
        onChange={(e) => changed(setAction)(e.target.value as Action)}
        options={(Object.keys(w.action) as Action[]).map((value) => ({ value, label: w.action[value] }))}
      />
      {action === 'reroute' && <ChannelChoice value={channel} error={fault.at('channel')} onChange={changed(setChannel)} />}
      <Field label={w.reason} hint={w.reasonHint} error={fault.at('reason')} required autoComplete="off" maxLength={mostReason} value={reason} onChange={(e) => changed(setReason)(e.target.value)} />
      <Field label={w.bulk.pace} hint={w.bulk.paceHint} error={fault.at('per_second')} type="number" min={1} max={100} step={1} required value={pace} onChange={(e) => changed(setPace)(e.target.value)} />
      <Problem error={fault.elsewhere} />
      <div className="row">
        <Button type="submit" variant={count.data ? 'plain' : 'main'} disabled={reason.trim() === ''}>
          {count.isPending ? w.sending : w.bulk.count}
        </Button>
        <Button onClick={onClose}>{words.ui.cancel}</Button>
      </div>
      {/* The button that starts the job is not where Preview is, so that a double click on Preview starts nothing. */}
      <div role="status">
        {count.data && (
          <Preview
            matched={count.data}
            action={action}
            sending={begin.isPending}
            onBegin={() => {
              if (!begin.isPending) begin.mutate();
            }}
          />
        )}
      </div>
    </form>
  );
}

/** Shows the preview of a job, and the button that starts it. A job that would change nothing cannot be started. */
function Preview({ matched: found, action, sending, onBegin }: { matched: Matched; action: Action; sending: boolean; onBegin: () => void }) {
  const { matched, tasks = [] } = found;
  const preview = previewOf(found);
  return (
    <div className="note warn stack">
      <p>
        <strong>{w.bulk.matched(matched)}</strong> {preview?.isPartial && <span>{w.bulk.checked(preview.checked)}</span>}
      </p>
      {preview && matched > 0 && (
        <Facts
          rows={[
            [w.bulk.applies(w.action[action]), <strong>{w.count(preview.applies)}</strong>],
            preview.skips > 0 && [w.bulk.skips, <SkippedTasks n={preview.skips} reasons={preview.skipped} />],
          ]}
        />
      )}
      <ul className={`${css.bulktasks} mono`}>
        {tasks.slice(0, shown).map((id) => (
          <li key={id}>
            <Link to="/operator/tasks/$id" params={{ id }} target="_blank">
              {id}
              <span className="sr"> {w.newTab}</span>
            </Link>
          </li>
        ))}
        {matched > shown && <li>{w.bulk.more(matched - shown)}</li>}
      </ul>
      {matched > 0 && !preview?.isIdle && (
        <div>
          <Button variant={action === 'fail' ? 'danger' : 'main'} onClick={onBegin}>
            {sending ? w.sending : preview && !preview.isPartial ? w.bulk.begin(w.action[action], preview.applies) : w.bulk.beginAll(w.action[action])}
          </Button>
        </div>
      )}
    </div>
  );
}

function SkippedTasks({ n, reasons }: { n: number; reasons: readonly SkippedBy[] }) {
  return (
    <>
      <strong>{w.count(n)}</strong>
      <ul className={css.skipped}>
        {reasons.map(({ reason, text, n }) => (
          <li key={reason}>
            {n.toLocaleString('en-GB')} {text}
          </li>
        ))}
      </ul>
    </>
  );
}

function Begun({ job, box, onClose }: { job: Matched; box: React.RefObject<HTMLDivElement | null>; onClose: () => void }) {
  return (
    <div className="stack" role="status" tabIndex={-1} ref={box}>
      <p>{job.job ? w.bulk.begun(job.matched) : w.bulk.nothing}</p>
      {job.job && <JobProgress id={job.job} matched={job.matched} />}
      <div>
        <Button onClick={onClose}>{words.ui.close}</Button>
      </div>
    </div>
  );
}

/** The progress of the job until it ends, and a link to its workflow. */
function JobProgress({ id, matched }: { id: string; matched: number }) {
  const { data, error } = useQuery({
    queryKey: queryKeys.taskJob(id),
    queryFn: ({ signal }) => call<JobStatus>('GET', `/admin/v1/tasks/actions/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: (q) => (q.state.data && q.state.data.state !== 'running' ? false : 1_000),
    // Between two slices of its work the job reports no progress. The page then keeps the last report.
    structuralSharing: (before, now) => {
      const [was, is] = [before as JobStatus | undefined, now as JobStatus];
      return { ...is, progress: is.progress ?? was?.progress ?? null };
    },
  });
  const ended = data !== undefined && data.state !== 'running';
  useEffect(() => {
    if (ended) void queryClient.invalidateQueries({ queryKey: queryKeys.adminTasks });
  }, [ended]);
  const p = data?.progress;
  const come = p ? p.done + p.skipped + p.failed : 0;
  return (
    <>
      {!data && <Problem error={error} />}
      {data && (
        <div className="stack">
          <p className="row">
            <Badge tone={data.state === 'running' ? 'busy' : data.state === 'done' ? 'good' : 'warn'}>{w.bulk.state[data.state]}</Badge>
            <progress aria-label={w.bulk.progress} max={Math.max(matched, come)} value={come} />
            <span>{w.bulk.come(come, Math.max(matched, come))}</span>
          </p>
          {p && <p className="soft">{w.bulk.counts(p.done, p.skipped, p.failed)}</p>}
        </div>
      )}
      <p className="soft">{w.bulk.watch}</p>
      <Code text={`actions/${id}`} />
      {data?.workflow.url && (
        <p>
          <Elsewhere url={data.workflow.url}>{w.inTemporal}</Elsewhere>
        </p>
      )}
    </>
  );
}
