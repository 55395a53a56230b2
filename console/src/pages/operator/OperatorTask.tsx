// The page of one task: what it waits for and which commands apply, then its events, attempts, money and callbacks.
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { LedgerEntry, Story } from '../../api/admin';
import { useMay, useSession } from '../../session';
import { wasTaken } from '../../task/callback';
import { Foreign } from '../../task/Foreign';
import { FailureNote, Money, StateBadge } from '../../task/State';
import { isOpen, isUnknown } from '../../task/useTask';
import { Ago, Amount, Badge, Button, Code, Facts, Loading, PageHead, Problem, Right, Table, Time, usePageTitle } from '../../ui';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';
import { Levers, OrderDialog, type Order } from './Levers';
import { MadeFrom, UsedBy } from './Chain';
import { lastErrorOf, type FailedAttempt } from './lastError';
import { AccountLink, Elsewhere, Soon, TaskLink, TasksLinked, Why, readable, useSaid } from './parts';
import css from './operator.module.css';

const w = operatorWords;

export function OperatorTask() {
  const { id } = useParams({ from: '/frame/operator/tasks/$id' });
  usePageTitle(w.task);
  const { data, error } = useQuery({
    queryKey: queryKeys.story(id),
    queryFn: ({ signal }) => call<Story>('GET', `/admin/v1/tasks/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: (q) => (isUnknown(q.state.error) || (q.state.data && !isOpen(q.state.data) && q.state.data.webhook?.state !== 'pending') ? false : 3_000),
  });
  if (!data) return isUnknown(error) ? <Unknown /> : error ? <Problem error={error} /> : <Loading />;
  // The key gives each task a page of its own, so that the request of one task never shows on the page of another.
  return <View key={id} story={data} />;
}

function View({ story }: { story: Story }) {
  const { currency } = useSession();
  const { waits_for: wait, stuck } = story;
  const [order, setOrder] = useState<Order | null>(null);
  const [said, say] = useSaid();
  const lastError = lastErrorOf(story);
  return (
    <>
      <PageHead title={w.task} lead={<Code text={story.id} />}>
        {story.workflow.url && (
          <Elsewhere className="button" url={story.workflow.url}>
            {w.inTemporal}
          </Elsewhere>
        )}
      </PageHead>
      <div className="stack">
        <section className={`card ${css.now} ${stuck ? css.stuck : ''}`} aria-labelledby="now">
          <h2 id="now" className="row">
            <StateBadge task={story} /> {stuck && <Badge tone="warn">{w.stuck}</Badge>}
            <span className="foreign">{story.model.slice(0, 200)}</span>
          </h2>
          <Facts
            rows={[
              stuck && [w.why, <Why stuck={stuck} />],
              stuck && stuck.since !== null && [w.since, <><Time unix={stuck.since} />, <Ago unix={stuck.since} /></>],
              wait && !stuck && [w.waitsFor, <TasksLinked text={wait.step} />],
              wait && wait.channels.length > 0 && [w.channel, <span className="mono">{wait.channels.join(', ')}</span>],
              wait && wait.until !== null && [w.until, <><Time unix={wait.until} />, <Soon unix={wait.until} /></>],
              wait && [w.then, readable(wait.then)],
              lastError && [w.lastError, <LastError attempt={lastError} />],
              [w.money, <Money task={story} />],
            ]}
          />
          <FailureNote task={story} />
          {story.unreadable && <p className="note warn">{w.unreadable}</p>}
          <Levers id={story.id} actions={story.actions} onPick={setOrder} />
          {story.actions.length === 0 && <p className="soft">{w.noLevers}</p>}
          {said}
        </section>

        <div className="columns">
          <section className="card">
            <h2>{w.story}</h2>
            <ol className={css.storylines}>
              {story.events.map((e, i) => (
                <li key={i}>
                  <Time unix={e.at} seconds />
                  <div>
                    <strong>{w.kind[e.what] ?? e.what}</strong>
                    {e.detail && (w.kind[e.what] ? <p><Amount value={e.detail} currency={currency} /></p> : <Foreign text={e.detail} limit={300} />)}
                  </div>
                </li>
              ))}
            </ol>
          </section>
          <section className="card">
            <h2>{w.facts}</h2>
            <Facts
              rows={[
                [w.account, <><AccountLink id={story.account} name={story.account_name} /> <span className="mono soft">{story.account}</span></>],
                [w.key, <span className="mono">{story.key}</span>],
                [w.type, words.tasks.types[story.type]],
                [w.created, <Time unix={story.created} />],
                story.completed !== undefined && [w.endedAt, <Time unix={story.completed} />],
                [w.progress, `${story.progress} %`],
                story.reference !== undefined && [w.field.reference, <Foreign text={story.reference} />],
                story.webhook && [w.callback, <>{words.task.page.callbackState[story.webhook.state]} {story.webhook.reason && <span className="foreign">({story.webhook.reason})</span>}</>],
                [w.run, <span className="mono">{story.workflow.run_id ?? words.ui.none}</span>],
              ]}
            />
            <Prompt id={story.id} />
          </section>
        </div>

        <MadeFrom story={story} />
        <UsedBy id={story.id} />

        <section>
          <h2>{w.attempts}</h2>
          {story.attempts.length === 0 ? (
            <p className="soft">{w.noAttempts}</p>
          ) : (
            <Table cards label={w.attempts} head={['#', w.channel, w.vendorJob, w.state, w.started, w.accepted, w.endedAt, w.vendorSaid]}>
              {story.attempts.map((a) => (
                <tr key={a.n}>
                  <th scope="row" data-label="#">{a.n}</th>
                  <td className="foreign" data-label={w.channel}>{a.channel}</td>
                  <td className="mono foreign" data-label={w.vendorJob}>
                    {a.vendor_job_id ?? words.ui.none}
                    <p className="soft">{a.external_id}</p>
                  </td>
                  <td data-label={w.state}>{w.attemptState[a.state] ?? a.state}</td>
                  <td data-label={w.started}><Time unix={a.started} seconds /></td>
                  <td data-label={w.accepted}><Time unix={a.accepted} seconds /></td>
                  <td data-label={w.endedAt}><Time unix={a.ended} seconds /></td>
                  <td className={css.wide} data-label={w.vendorSaid}>
                    {a.error ? <Foreign text={a.error} limit={200} /> : <span>{words.ui.none}</span>}
                  </td>
                </tr>
              ))}
            </Table>
          )}
        </section>

        <section>
          <h2>{w.money}</h2>
          <LedgerTable entries={story.ledger} currency={currency} />
        </section>

        {story.deliveries.length > 0 && (
          <section>
            <h2>{w.deliveries}</h2>
            <Table cards label={w.deliveries} head={['#', w.at, w.answer, <Right>{w.took}</Right>, w.nextAttempt]}>
              {story.deliveries.map((d, i) => (
                <tr key={i}>
                  <th scope="row" data-label="#">{d.round === 1 ? d.attempt : `${d.round}.${d.attempt}`}</th>
                  <td data-label={w.at}><Time unix={d.at} seconds /></td>
                  <td className={css.wide} data-label={w.answer}>
                    {d.status !== null && <Badge tone={wasTaken(d) ? 'good' : 'bad'}>{d.status}</Badge>}
                    {d.error !== null && <Foreign text={d.error} limit={200} />}
                  </td>
                  <td className="number" data-label={w.took}>{d.duration_ms} ms</td>
                  <td data-label={w.nextAttempt}><Time unix={d.next_attempt_at} seconds /></td>
                </tr>
              ))}
            </Table>
          </section>
        )}
      </div>
      <OrderDialog order={order} onClose={() => setOrder(null)} onDone={say} />
    </>
  );
}

/** The last error of a vendor: code and message, then where and when it came. */
function LastError({ attempt }: { attempt: FailedAttempt }) {
  return (
    <>
      <Foreign text={attempt.error} limit={300} />
      <p className="soft">
        {w.attempt(attempt.n)} · <span className="foreign">{attempt.channel}</span> · <Ago unix={attempt.ended ?? attempt.started} />
      </p>
    </>
  );
}

function Unknown() {
  return (
    <>
      <PageHead title={words.task.page.unknown} lead={w.unknownHint} />
      <Link to="/operator">{w.stuckTitle}</Link>
    </>
  );
}

export function LedgerTable({ entries, currency, withTask = false }: { entries: readonly LedgerEntry[]; currency: string; withTask?: boolean }) {
  if (entries.length === 0) return <p className="soft">{w.noEntries}</p>;
  return (
    <Table cards label={w.money} head={[w.at, w.entry, <Right>{w.amount}</Right>, ...(withTask ? [w.task] : []), w.field.reference]}>
      {entries.map((e) => (
        <tr key={e.id}>
          <td><Time unix={e.at} /></td>
          <th scope="row">{w.kind[e.kind] ?? e.kind}</th>
          <td className="number" data-label={w.amount}><Amount value={e.amount} currency={currency} /></td>
          {withTask && <td data-label={w.task}>{e.task ? <TaskLink id={e.task} /> : words.ui.none}</td>}
          <td className="foreign" data-label={w.field.reference}>{e.reference ?? words.ui.none}</td>
        </tr>
      ))}
    </Table>
  );
}

// Moves the focus to the request, which replaces the button that had the focus.
const focus = (box: HTMLElement | null) => box?.focus();

/** The client's request. It is read only when the operator asks for it, because the audit records each read. */
function Prompt({ id }: { id: string }) {
  const read = useMutation({ mutationFn: () => call<Story>('GET', `/admin/v1/tasks/${encodeURIComponent(id)}`, { query: { prompt: true } }) });
  if (!useMay('operate')) return <p className="soft">{w.promptRole}</p>;
  if (read.data) {
    const text = read.data.request === undefined ? w.erased : JSON.stringify(read.data.request, null, 2);
    return (
      <div className={`${css.request} mono`} role="region" tabIndex={0} aria-label={w.request} ref={focus}>
        <Foreign text={text} limit={4000} />
      </div>
    );
  }
  return (
    <div className={`stack ${css.promptask}`}>
      <p className="soft">{w.promptHint}</p>
      <Button disabled={read.isPending} onClick={() => read.mutate()}>{w.showPrompt}</Button>
      <Problem error={read.error} />
    </div>
  );
}
