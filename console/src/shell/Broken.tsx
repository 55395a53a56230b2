import { Link, type ErrorComponentProps } from '@tanstack/react-router';
import { useState } from 'react';
import { wordsOf } from '../api/client';
import { Button, Loading } from '../ui';
import { words } from '../words';
import { MissingPart } from './load';

/** The page for an error, which is shown as text. If a part of the application is missing, the page is of an older
 * version and reloads itself. */
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
