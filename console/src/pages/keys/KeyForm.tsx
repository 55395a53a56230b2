// The form for a new key, and for changes to one.
import { useEffect, useRef, useState, type FormEvent } from 'react';
import { ApiError } from '../../api/client';
import type { Key } from '../../api/types';
import { Button, Check, Field, Problem, TextArea } from '../../ui';
import { words } from '../../words';
import { ModelMatches } from './ModelMatches';
import { changes, newKey, newSettings, scopes, settingsOf, type Body, type Settings } from './settings';
import css from './keys.module.css';

const w = words.keys;

interface Props {
  /** The key to change; none for a new one. */
  change?: Key | null;
  /** The key of the session, which limits what the form can give; null for operators. */
  maker: Key | null;
  /** The IDs of models against which patterns are matched. */
  models?: readonly string[] | undefined;
  currency: string;
  busy: boolean;
  error: unknown;
  onSubmit: (body: Body) => void;
  onCancel: () => void;
}

// The fields of the form, by their names in the API.
const named = ['name', 'scopes', 'unlimited', 'quota', 'caps', 'rate', 'in_flight', 'models', 'allow_ips', 'expires_at', 'strict'];

export function KeyForm({ change, maker, models, currency, busy, error, onSubmit, onCancel }: Props) {
  const [settings, setSettings] = useState(() => (change ? settingsOf(change) : newSettings(maker)));
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  }, [error]);

  const set = <N extends keyof Settings>(name: N, value: Settings[N]) => setSettings((s) => ({ ...s, [name]: value }));
  const typed = (name: 'name' | 'quota' | 'day' | 'week' | 'month' | 'rate' | 'inFlight' | 'models' | 'addresses' | 'expires' | 'group') => ({
    value: settings[name],
    onChange: (e: { target: { value: string } }) => set(name, e.target.value),
  });
  // An error message starts with the name of a field, an entry of it (models[2]) or a part of it (caps.day).
  const message = error instanceof ApiError ? error.message : '';
  const param = /^[a-z_]+(\.[a-z]+)?/.exec(message)?.[0];
  const fault = (name: string) => (param === name ? message : null);
  const top = param?.split('.')[0];
  const shown = top !== undefined && (named.includes(top) || (top === 'group' && maker === null));

  const body = change ? changes(change, settings) : newKey(settings);
  const submit = (e: FormEvent) => {
    e.preventDefault();
    onSubmit(body);
  };
  const money = { inputMode: 'decimal', autoComplete: 'off', pattern: '[0-9]{1,12}([.][0-9]{1,6})?', title: w.amountForm } as const;
  const count = { type: 'number', min: 0, step: 1, inputMode: 'numeric', autoComplete: 'off' } as const;
  const quotaFault = fault('quota') ?? fault('unlimited');
  return (
    <form className={css.keyform} ref={form} onSubmit={submit}>
      {maker && (!change || change.id !== maker.id) && <p className="soft">{change ? w.changeRule : w.newRule}</p>}
      {maker && change?.id === maker.id && <p className="note">{w.ownRule}</p>}
      <Field label={w.name} hint={w.nameHint} error={fault('name')} required maxLength={255} autoComplete="off" {...typed('name')} />

      <fieldset aria-describedby={fault('scopes') ? 'scopes-fault' : undefined}>
        <legend>{w.scopes}</legend>
        {scopes.map((scope) => (
          <Check
            key={scope}
            label={w.scope[scope]}
            hint={w.scopeHint[scope]}
            checked={settings.scopes.includes(scope)}
            disabled={maker !== null && !maker.scopes.includes(scope) && !settings.scopes.includes(scope)}
            onChange={(e) => set('scopes', e.target.checked ? [...settings.scopes, scope] : settings.scopes.filter((s) => s !== scope))}
          />
        ))}
        {fault('scopes') && (
          <p className="fault" id="scopes-fault" role="alert">
            {fault('scopes')}
          </p>
        )}
      </fieldset>

      <fieldset>
        <legend>{w.budget}</legend>
        <label className={css.choice}>
          <input type="radio" name="budget" checked={settings.unlimited} onChange={() => set('unlimited', true)} />
          {w.unlimited}
        </label>
        <label className={css.choice}>
          <input type="radio" name="budget" checked={!settings.unlimited} onChange={() => set('unlimited', false)} />
          {w.limited}
        </label>
        {!settings.unlimited && <Field label={w.quota(currency)} hint={w.quotaHint} error={fault('quota')} required {...money} {...typed('quota')} />}
        {quotaFault && settings.unlimited && (
          <p className="fault" role="alert">
            {quotaFault}
          </p>
        )}
      </fieldset>

      <fieldset>
        <legend>{w.caps}</legend>
        <p className="hint">{w.capsHint}</p>
        <div className={css.three}>
          <Field label={w.day(currency)} error={fault('caps.day') ?? fault('caps')} {...money} {...typed('day')} />
          <Field label={w.week(currency)} error={fault('caps.week')} {...money} {...typed('week')} />
          <Field label={w.month(currency)} error={fault('caps.month')} {...money} {...typed('month')} />
        </div>
      </fieldset>

      <fieldset>
        <legend>{w.pace}</legend>
        <div className={css.three}>
          <Field label={w.rate} hint={w.rateHint} error={fault('rate')} {...count} {...typed('rate')} />
          <Field label={w.inFlight} hint={w.inFlightHint} error={fault('in_flight')} {...count} {...typed('inFlight')} />
        </div>
      </fieldset>

      <div>
        <TextArea label={w.models} hint={w.modelsHint} error={fault('models')} rows={3} className="mono" spellCheck={false} autoComplete="off" {...typed('models')} />
        <ModelMatches patterns={settings.models} models={models} />
      </div>
      <TextArea label={w.addresses} hint={w.addressesHint} error={fault('allow_ips')} rows={3} className="mono" spellCheck={false} autoComplete="off" {...typed('addresses')} />
      <Field label={w.expires} hint={w.expiresHint(Intl.DateTimeFormat().resolvedOptions().timeZone)} error={fault('expires_at')} type="datetime-local" {...typed('expires')} />
      <Check label={w.strict} hint={w.strictHint} checked={settings.strict} onChange={(e) => set('strict', e.target.checked)} />
      {maker === null && <Field label={w.group} hint={w.groupHint} error={fault('group')} autoComplete="off" {...typed('group')} />}

      {error !== null && !shown && <Problem error={error} />}
      <div className={`row ${css.formend}`}>
        <Button type="submit" variant="main" disabled={busy || settings.scopes.length === 0 || Object.keys(body).length === 0}>
          {busy ? w.saving : change ? w.save : w.create}
        </Button>
        <Button onClick={onCancel}>{words.ui.cancel}</Button>
        {settings.scopes.length === 0 && <p className="fault">{w.noScope}</p>}
      </div>
    </form>
  );
}
