// The channels: the state of each, its jobs and errors, and the buttons that drain or enable it.
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { call, faults } from '../../api/client';
import type { Channel } from '../../api/admin';
import { queryClient, useMay } from '../../session';
import { Foreign } from '../../task/Foreign';
import { Ago, Badge, Button, Dialog, Empty, Field, Loading, PageHead, Problem, Right, Table, usePageTitle } from '../../ui';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';
import { mostReason } from './Levers';
import { Elsewhere, Soon, useSaid } from './parts';
import { channelsQuery, toneOf } from './queries';
import { runbookOf } from './runbook';
import css from './operator.module.css';

const w = operatorWords;

export function Channels() {
  usePageTitle(w.channelsTitle);
  const { data, error } = useQuery(channelsQuery);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [said, say] = useSaid();
  const may = useMay('operate');
  return (
    <>
      <PageHead title={w.channelsTitle} lead={w.channelsLead} />
      {said}
      <Problem error={data ? null : error} />
      {!data && !error && <Loading />}
      {data?.data.length === 0 && <Empty title={w.noChannels} />}
      {data && data.data.length > 0 && (
        <Table cards label={w.channelsTitle} head={[w.channel, w.state, <Right>{w.inFlight}</Right>, <Right>{w.waiting}</Right>, <Right>{w.errors}</Right>, w.lastError, w.levers]}>
          {data.data.map((c) => (
            <tr key={c.name}>
              <th scope="row">
                <span className="foreign">{c.name}</span>
                <p className="soft">
                  {c.provider || w.unconfigured}
                  {c.models.length > 0 && <span> · {c.models.join(', ')}</span>}
                </p>
              </th>
              <td>
                <Badge tone={toneOf(c)}>{w.channelState[c.state]}</Badge>
                {c.reason && (
                  <p>
                    <Elsewhere className={`mono ${css.code2}`} url={runbookOf(c.reason)}>
                      {w.runbook} {c.reason}
                    </Elsewhere>
                  </p>
                )}
                {c.disabled_reason && <Foreign text={c.disabled_reason} limit={160} />}
                {c.since !== null && (
                  <p className="soft">
                    <Ago unix={c.since} />
                  </p>
                )}
                {c.next_probe_at !== null && (
                  <p className="soft">
                    {w.nextProbe} <Soon unix={c.next_probe_at} />
                  </p>
                )}
                {retiredOf(c).map((model) => (
                  <p key={model.upstream} className="soft">
                    {w.retired} <span className="foreign">{model.upstream}</span>, {w.retiredUntil} <Soon unix={model.until} />
                  </p>
                ))}
              </td>
              <td className="number" data-label={w.inFlight}>
                {c.in_flight}
                {c.concurrency > 0 && <span className="soft"> / {c.concurrency}</span>}
                {c.polling > 0 && <p className="soft">{w.polling(c.polling)}</p>}
              </td>
              <td className="number" data-label={w.waiting}>
                {c.waiting}
                {c.oldest !== null && (
                  <p className="soft">
                    {w.oldest} <Ago unix={c.oldest} />
                  </p>
                )}
              </td>
              <td className="number" data-label={w.errors}>{c.error_rate === null ? words.ui.none : <ErrorRate rate={c.error_rate} />}</td>
              <td data-label={w.lastError}>
                {c.last_error ? (
                  <>
                    <Foreign text={c.last_error} limit={160} />
                    <p className="soft">
                      <Ago unix={c.last_error_at} />
                    </p>
                  </>
                ) : (
                  words.ui.none
                )}
              </td>
              <td>
                <div className={`row ${css.levers}`}>
                  {(may ? leversOf(c) : []).map((lever) => (
                    <Button key={lever} variant={lever === 'drain' ? 'danger' : 'plain'} aria-label={w.channelLever[lever].of(c.name)} onClick={() => setAsked({ channel: c, lever })}>
                      {w.channelLever[lever].do}
                    </Button>
                  ))}
                </div>
              </td>
            </tr>
          ))}
        </Table>
      )}
      <Dialog open={asked !== null} title={asked && w.channelLever[asked.lever].of(asked.channel.name)} onClose={() => setAsked(null)}>
        {asked && (
          <Switch
            {...asked}
            onClose={() => setAsked(null)}
            onDone={() => {
              setAsked(null);
              say(w.channelLever[asked.lever].done(asked.channel.name));
            }}
          />
        )}
      </Dialog>
    </>
  );
}

/** The share of submits that failed. It is red from 50 % on, even while the breaker is closed. */
function ErrorRate({ rate }: { rate: number }) {
  const text = `${(rate * 100).toFixed(1)} %`;
  return rate >= 0.5 ? <Badge tone="bad">{text}</Badge> : <>{text}</>;
}

type Lever = keyof typeof w.channelLever;
interface Asked {
  channel: Channel;
  lever: Lever;
}

/** The models that the vendor no longer has. An API of an older version does not send the field. */
function retiredOf(c: Channel): Channel['retired'] {
  return (c.retired as Channel['retired'] | undefined) ?? [];
}

/** The actions that apply. Three of them send `enabled: true`, which enables the channel, closes its breaker and ends
 * the pause of its retired models: the button says which of these the operator needs. */
function leversOf(c: Channel): Lever[] {
  if (!c.enabled) return ['enable'];
  if (c.state === 'broken') return ['close', 'drain'];
  return retiredOf(c).length > 0 ? ['reopen', 'drain'] : ['drain'];
}

function Switch({ channel, lever, onClose, onDone }: Asked & { onClose: () => void; onDone: () => void }) {
  const [reason, setReason] = useState('');
  const drains = lever === 'drain';
  const change = useMutation({
    mutationFn: () =>
      call('PATCH', `/admin/v1/channels/${encodeURIComponent(channel.name)}`, { body: { enabled: !drains, ...(reason.trim() && { reason: reason.trim() }) } }),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: channelsQuery.queryKey });
      onDone();
    },
  });
  const fault = faults(change.error, ['reason']);
  return (
    <form
      className="stack"
      onSubmit={(e) => {
        e.preventDefault();
        if (!change.isPending) change.mutate();
      }}
    >
      <p>{w.channelLever[lever].hint}</p>
      {drains && <p className="soft">{w.hasNow(channel.in_flight, channel.waiting)}</p>}
      <Field label={w.reason} hint={drains ? w.drainReasonHint : w.reasonHint} error={fault.at('reason')} required={drains} autoComplete="off" maxLength={mostReason} value={reason} onChange={(e) => setReason(e.target.value)} />
      <Problem error={fault.elsewhere} />
      <div className="row">
        <Button type="submit" variant={drains ? 'danger' : 'main'} disabled={drains && reason.trim() === ''}>
          {change.isPending ? w.sending : w.channelLever[lever].do}
        </Button>
        <Button onClick={onClose}>{words.ui.cancel}</Button>
      </div>
    </form>
  );
}
