// The health of an endpoint: since when it has failed, or since when and why it is disabled.
import { Badge, Time } from '../../ui';
import { words } from '../../words';
import { healthOf, tones, type Endpoint } from './endpoints';
import css from './webhooks.module.css';

const w = words.webhooks;

export function Health({ of }: { of: Endpoint }) {
  const health = healthOf(of);
  const since = of.disabled_at ?? of.failing_since;
  return (
    <span className={css.health}>
      <Badge tone={tones[health]}>{w.health[health]}</Badge>
      {since !== null && (
        <span className="soft">
          <span>{w.since}</span> <Time unix={since} />
        </span>
      )}
    </span>
  );
}
