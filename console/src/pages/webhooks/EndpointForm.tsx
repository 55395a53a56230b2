// The form for a new endpoint, and for changes to one.
import { useEffect, useRef, useState, type FormEvent } from 'react';
import { ApiError } from '../../api/client';
import { Button, Check, Field, Problem } from '../../ui';
import { words } from '../../words';
import { bodyOf, eventTypes, settingsOf, type Endpoint, type Settings } from './endpoints';

const w = words.webhooks;

interface Props {
  /** The endpoint to change; undefined for a new one. */
  change?: Endpoint;
  currency: string;
  busy: boolean;
  error: unknown;
  onSubmit: (body: ReturnType<typeof bodyOf>) => void;
  onCancel: () => void;
}

export function EndpointForm({ change, currency, busy, error, onSubmit, onCancel }: Props) {
  const [settings, setSettings] = useState(() => settingsOf(change));
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  }, [error]);
  const set = <N extends keyof Settings>(name: N, value: Settings[N]) => setSettings((s) => ({ ...s, [name]: value }));
  const param = error instanceof ApiError ? error.param?.split('[')[0] : undefined;
  const fault = (name: string) => (param === name && error instanceof ApiError ? error.message : null);
  const shown = ['url', 'events', 'description', 'balance_low'].some(fault);
  const submit = (e: FormEvent) => {
    e.preventDefault();
    onSubmit(bodyOf(settings));
  };
  return (
    <form className="stack" ref={form} onSubmit={submit}>
      <Field
        label={w.url}
        hint={w.urlHint}
        error={fault('url')}
        type="url"
        required
        maxLength={2048}
        autoComplete="off"
        placeholder="https://"
        value={settings.url}
        onChange={(e) => set('url', e.target.value)}
      />
      <fieldset aria-describedby={fault('events') ? 'events-fault' : undefined}>
        <legend>{w.events}</legend>
        {eventTypes.map((type) => (
          <Check
            key={type}
            label={<span className="mono">{type}</span>}
            hint={w.eventHint[type]}
            checked={settings.events.includes(type)}
            onChange={(e) => set('events', e.target.checked ? [...settings.events, type] : settings.events.filter((t) => t !== type))}
          />
        ))}
        {fault('events') && (
          <p className="fault" id="events-fault" role="alert">
            {fault('events')}
          </p>
        )}
      </fieldset>
      {settings.events.includes('balance.low') && (
        <Field
          label={w.balanceLow(currency)}
          hint={w.balanceLowHint}
          error={fault('balance_low')}
          required
          inputMode="decimal"
          autoComplete="off"
          pattern="[0-9]{1,12}([.][0-9]{1,6})?"
          title={words.keys.amountForm}
          value={settings.balanceLow}
          onChange={(e) => set('balanceLow', e.target.value)}
        />
      )}
      <Field label={w.description} error={fault('description')} maxLength={255} autoComplete="off" value={settings.description} onChange={(e) => set('description', e.target.value)} />
      {!shown && <Problem error={error} />}
      <div className="row">
        <Button type="submit" variant="main" disabled={busy || settings.events.length === 0}>
          {busy ? words.keys.saving : change ? words.keys.save : w.create}
        </Button>
        <Button onClick={onCancel}>{words.ui.cancel}</Button>
      </div>
    </form>
  );
}
