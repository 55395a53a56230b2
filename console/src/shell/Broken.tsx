import { Link, type ErrorComponentProps } from '@tanstack/react-router';
import { wordsOf } from '../api/client';
import { Button } from '../ui';
import { words } from '../words';

/** A page that failed. Its error is shown as text. */
export function Broken({ error, reset }: ErrorComponentProps) {
  return (
    <main className="centred">
      <h1>{words.shell.broken}</h1>
      <p className="mono">{wordsOf(error)}</p>
      <Button onClick={reset}>{words.shell.again}</Button>
    </main>
  );
}

export function Missing() {
  return (
    <main className="centred">
      <h1>{words.shell.missing}</h1>
      <p>
        <Link to="/">{words.shell.home}</Link>
      </p>
    </main>
  );
}
