import { Link, type ErrorComponentProps } from '@tanstack/react-router';
import { useState } from 'react';
import { wordsOf } from '../api/client';
import { Button, Loading } from '../ui';
import { words } from '../words';
import { MissingPart } from './load';

/** A page that failed. Its error is shown as text. One of which a part is missing is of an older
 * version, and loads itself again. */
export function Broken({ error, reset }: ErrorComponentProps) {
  const [reloads] = useState(() => error instanceof MissingPart && window.reloadPage?.());
  if (reloads) return <Loading />;
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
