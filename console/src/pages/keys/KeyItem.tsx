// One key of the list: its scopes, spending, limits and expiry.
import { useId } from 'react';
import type { Key } from '../../api/types';
import { Ago, Amount, Badge, Button, formatAmount, formatTime, useNow, type Tone } from '../../ui';
import { words } from '../../words';
import css from './keys.module.css';

const w = words.keys;
const soon = 7 * 86400;

function stateOf(key: Key, now: number): { tone: Tone; text: string; live: boolean } {
  const ended = key.expires_at !== null && key.expires_at <= now;
  if (ended) return { tone: 'neutral', text: key.rotated_to ? w.replaced : w.expired, live: false };
  if (key.rotated_to) return { tone: 'warn', text: w.beingReplaced, live: true };
  if (!key.unlimited && Number(key.quota) - Number(key.held) - Number(key.spent) <= 0) return { tone: 'bad', text: w.usedUp, live: true };
  if (key.expires_at !== null && key.expires_at < now + soon) return { tone: 'warn', text: w.endsSoon, live: true };
  return { tone: 'good', text: w.active, live: true };
}

/** The used amounts of a key's caps by day, week and month; empty for a key without caps. */
export function capsOf({ caps, caps_used }: Key, currency: string): string[] {
  const amount = (used: string | null, cap: string) => w.spentOf(formatAmount(used ?? 0, currency), formatAmount(cap, currency));
  return [
    caps.day !== null && w.perDay(amount(caps_used.day, caps.day)),
    caps.week !== null && w.perWeek(amount(caps_used.week, caps.week)),
    caps.month !== null && w.perMonth(amount(caps_used.month, caps.month)),
  ].filter((text) => text !== false);
}

function limitsOf(key: Key, currency: string): string[] {
  return [
    ...capsOf(key, currency),
    key.rate !== null && w.perMinute(key.rate),
    key.in_flight !== null && w.atOnce(key.in_flight),
    key.allow_ips.length > 0 && w.fromAddresses(key.allow_ips.length),
    key.group !== null && w.ofGroup(key.group),
  ].filter((text) => text !== false);
}

function Spending({ item, currency }: { item: Key; currency: string }) {
  const used = Number(item.spent) + Number(item.held);
  if (item.quota === null) {
    return (
      <>
        <Amount value={item.spent} currency={currency} /> <span className="soft">{w.noQuota}</span>
      </>
    );
  }
  return (
    <>
      <span>{w.spentOf(formatAmount(item.spent, currency), formatAmount(item.quota, currency))}</span>
      <meter min={0} max={Math.max(Number(item.quota), 1e-6)} value={used} aria-label={w.spentOf(formatAmount(used, currency), formatAmount(item.quota, currency))} />
      {Number(item.held) > 0 && <span className="soft">{w.held(formatAmount(item.held, currency))}</span>}
    </>
  );
}

export function KeyItem({ item, own, currency, act }: { item: Key; own: boolean; currency: string; act: ((what: 'change' | 'rotate' | 'revoke') => void) | null }) {
  const state = stateOf(item, useNow(10_000));
  const id = useId();
  const limits = limitsOf(item, currency);
  return (
    <li className={css.key} aria-labelledby={id}>
      <div className={css.keyname}>
        <h2 id={id} className="foreign">
          {item.name}
        </h2>
        <p className="mono soft">
          {item.prefix}…{item.last_four}
        </p>
        <p className="row">
          <Badge tone={state.tone}>{state.text}</Badge>
          {own && <Badge tone="busy">{w.thisSession}</Badge>}
        </p>
      </div>
      <dl>
        <div>
          <dt>{w.may}</dt>
          <dd className="row tight">
            {item.scopes.map((scope) => (
              <Badge key={scope}>{w.scopeShort[scope]}</Badge>
            ))}
          </dd>
        </div>
        <div>
          <dt>{w.spent}</dt>
          <dd>
            <Spending item={item} currency={currency} />
          </dd>
        </div>
        <div>
          <dt>{w.lastUsed}</dt>
          <dd>
            <Ago unix={item.last_used_at} />
          </dd>
        </div>
        <div>
          <dt>{state.live ? w.until : w.ended}</dt>
          <dd>{item.expires_at === null ? w.forever : <time dateTime={new Date(item.expires_at * 1000).toISOString()}>{formatTime(item.expires_at)}</time>}</dd>
        </div>
        <div className={css.wide}>
          <dt>{w.limits}</dt>
          <dd>
            {item.models.length === 0 && limits.length === 0 && <span>{w.noLimits}</span>}
            {item.models.length > 0 && (
              <span className="foreign mono" title={item.models.join('\n')}>
                {item.models.slice(0, 3).join(', ')}
                {item.models.length > 3 && <span> {w.andMore(item.models.length - 3)}</span>}
              </span>
            )}
            {limits.length > 0 && (
              <span className="foreign">
                {(item.models.length > 0 ? ' · ' : '') + limits.join(' · ')}
              </span>
            )}
          </dd>
        </div>
      </dl>
      <div className={css.keyactions}>
        {act && state.live && (
          <Button variant="quiet" onClick={() => act('change')} aria-label={w.changeOf(item.name)}>
            {w.change}
          </Button>
        )}
        {act && state.live && !item.rotated_to && (
          <Button variant="quiet" onClick={() => act('rotate')} aria-label={w.rotateOf(item.name)}>
            {w.rotate}
          </Button>
        )}
        {act && (
          <Button variant="quiet" className={css.revoke} onClick={() => act('revoke')} aria-label={w.revokeOf(item.name)}>
            {w.revoke}
          </Button>
        )}
      </div>
    </li>
  );
}
