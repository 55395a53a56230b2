// The vendors' accounts: whether they work, what they have in hand, and the lever to drain one.
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/client';
import type { Channel } from '../../api/admin';
import { queryClient, useMay } from '../../session';
import { Foreign } from '../../task/Foreign';
import { Ago, Badge, Button, Dialog, Empty, Loading, PageHead, Problem, Table, usePageTitle } from '../../ui';
import { words } from '../../words';
import { Soon, useSaid } from './parts';
import { channelsQuery, toneOf } from './queries';
import '../../styles/operator.css';

const w = words.operator;

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
        <Table label={w.channelsTitle} head={[w.channel, w.state, w.inFlight, w.waiting, w.errors, w.lastError, w.levers]}>
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
                {c.reason && <p className="soft mono foreign">{c.reason}</p>}
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
              </td>
              <td className="number">
                {c.in_flight}
                {c.concurrency > 0 && <span className="soft"> / {c.concurrency}</span>}
                {c.polling > 0 && <p className="soft">{w.polling(c.polling)}</p>}
              </td>
              <td className="number">
                {c.waiting}
                {c.oldest !== null && (
                  <p className="soft">
                    {w.oldest} <Ago unix={c.oldest} />
                  </p>
                )}
              </td>
              <td className="number">{c.error_rate === null ? words.ui.none : `${(c.error_rate * 100).toFixed(1)} %`}</td>
              <td>
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
                <div className="row levers">
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

type Lever = keyof typeof w.channelLever;
interface Asked {
  channel: Channel;
  lever: Lever;
}

/** Enabling closes the breaker too, whether the channel was drained or not. */
function leversOf(c: Channel): Lever[] {
  if (!c.enabled) return ['enable'];
  return c.state === 'broken' ? ['close', 'drain'] : ['drain'];
}

function Switch({ channel, lever, onClose, onDone }: Asked & { onClose: () => void; onDone: () => void }) {
  const change = useMutation({
    mutationFn: () => call('PATCH', `/admin/v1/channels/${encodeURIComponent(channel.name)}`, { body: { enabled: lever !== 'drain' } }),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: channelsQuery.queryKey });
      onDone();
    },
  });
  return (
    <div className="stack">
      <p>{w.channelLever[lever].hint}</p>
      {lever === 'drain' && <p className="soft">{w.hasNow(channel.in_flight, channel.waiting)}</p>}
      <Problem error={change.error} />
      <div className="row">
        <Button variant={lever === 'drain' ? 'danger' : 'main'} onClick={() => !change.isPending && change.mutate()}>
          {change.isPending ? w.sending : w.channelLever[lever].do}
        </Button>
        <Button onClick={onClose}>{words.ui.cancel}</Button>
      </div>
    </div>
  );
}
