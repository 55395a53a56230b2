// Strip shows in one line how many tasks are stuck, and which parts of the service and which channels are in trouble.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Badge } from '../../ui';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';
import { channelsQuery, readyQuery, stuckCountQuery, toneOf } from './queries';
import css from './operator.module.css';

const w = operatorWords;

export function Strip() {
  const ready = useQuery(readyQuery);
  const channels = useQuery(channelsQuery);
  const { data: stuck } = useQuery({ ...stuckCountQuery, refetchInterval: 10_000 });
  const bad = channels.data?.data.filter((c) => c.state !== 'up') ?? [];
  return (
    <p className={`row ${css.strip}`} role="status">
      {stuck === 0 && <Badge tone="good">{w.noneStuck}</Badge>}
      {stuck !== undefined && stuck > 0 && (
        <Link to="/operator">
          <Badge tone="warn">{words.shell.someStuck(stuck)}</Badge>
        </Link>
      )}
      {ready.data?.status === 'ready' && <Badge tone="good">{w.ready}</Badge>}
      {ready.data?.status === 'unavailable' && <Badge tone="bad">{w.notReady(ready.data.error?.message ?? '')}</Badge>}
      {ready.data?.degraded?.map((part) => (
        <Badge key={part} tone="bad">
          {w.isAway(part)}
        </Badge>
      ))}
      {channels.data && bad.length === 0 && <Badge tone="good">{w.channelsUp(channels.data.data.length)}</Badge>}
      {bad.map((c) => (
        <Link key={c.name} to="/operator/channels">
          <Badge tone={toneOf(c)}>{w.channelIs(c.name, w.channelState[c.state])}</Badge>
        </Link>
      ))}
    </p>
  );
}
