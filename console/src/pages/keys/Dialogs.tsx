// The confirmations before a key is rotated or revoked.
import { useState } from 'react';
import type { Key } from '../../api/types';
import { Button, Problem } from '../../ui';
import { words } from '../../words';
import css from './keys.module.css';

const w = words.keys;

interface Props {
  of: Key;
  own: boolean;
  busy: boolean;
  error: unknown;
  onCancel: () => void;
}

const graces = [0, 3600, 86400, 604800, 2592000] as const;

export function Rotate({ of, own, busy, error, onCancel, onSubmit }: Props & { onSubmit: (grace: number) => void }) {
  const [grace, setGrace] = useState<number>(86400);
  return (
    <form
      className="stack"
      onSubmit={(e) => {
        e.preventDefault();
        onSubmit(grace);
      }}
    >
      <p>{w.rotateWhat}</p>
      <fieldset>
        <legend>{w.grace}</legend>
        {graces.map((seconds) => (
          <label key={seconds} className={css.choice}>
            <input type="radio" name="grace" checked={grace === seconds} onChange={() => setGrace(seconds)} />
            {w.graces[seconds]}
          </label>
        ))}
      </fieldset>
      <p className="hint">{own ? w.rotateOwn : w.rotateSessions}</p>
      {of.expires_at !== null && <p className="hint">{w.rotateExpiry}</p>}
      <Problem error={error} />
      <div className="row">
        <Button type="submit" variant="main" disabled={busy}>
          {busy ? w.saving : w.rotateNow}
        </Button>
        <Button onClick={onCancel}>{words.ui.cancel}</Button>
      </div>
    </form>
  );
}

export function Revoke({ of, own, busy, error, onCancel, onSubmit }: Props & { onSubmit: () => void }) {
  return (
    <div className="stack">
      <p>{w.revokeWhat}</p>
      <p className="mono">
        {of.prefix}…{of.last_four}
      </p>
      {own && <p className="note warn">{w.revokeOwn}</p>}
      <Problem error={error} />
      <div className="row">
        <Button variant="danger" disabled={busy} onClick={onSubmit}>
          {busy ? w.saving : w.revokeNow}
        </Button>
        <Button onClick={onCancel}>{words.ui.cancel}</Button>
      </div>
    </div>
  );
}
