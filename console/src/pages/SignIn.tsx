import { useMutation } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { ApiError } from '../api/client';
import { sessionEnded, signIn } from '../session';
import { Button, Field, Logo, Problem, usePageTitle } from '../ui';
import { words } from '../words';

const w = words.signIn;

// The link that the standalone prints has its token behind the #, where no server sees it.
const inAddress = () => new URLSearchParams(window.location.hash.slice(1)).get('link');

/** Says that the API did not take the key, or the link. */
const isRefused = (error: unknown) => error instanceof ApiError && error.status === 401;

export function SignIn() {
  usePageTitle(w.title);
  const navigate = useNavigate();
  const { to } = useSearch({ from: '/sign-in' });
  const [key, setKey] = useState('');
  const [byLink] = useState(inAddress);
  const enter = useMutation({
    mutationFn: signIn,
    onSuccess: () => navigate({ to: to ?? '/', hash: '', replace: true }),
  });
  useEffect(() => {
    // The link works once: an effect that React runs twice must not use it twice.
    const link = inAddress();
    if (!link) return;
    window.history.replaceState(window.history.state, '', window.location.pathname + window.location.search);
    enter.mutate({ link });
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  return (
    <main className="centred">
      <form
        className="card signin"
        onSubmit={(e) => {
          e.preventDefault();
          enter.mutate({ key: key.trim() });
        }}
      >
        <Logo />
        <h1>{w.title}</h1>
        {sessionEnded() && !enter.isError && <p className="note warn">{w.ended}</p>}
        <p className="lead">{w.lead}</p>
        {/* By which a password manager keeps the key. */}
        <input type="text" name="username" autoComplete="username" value={words.shell.product} readOnly hidden />
        <Field label={w.key} hint={w.hint} name="key" type="password" autoComplete="current-password" spellCheck={false} required value={key} onChange={(e) => setKey(e.target.value)} />
        {enter.isError && (byLink && !key && isRefused(enter.error) ? <p role="alert" className="note bad">{w.linkUsed}</p> : <Problem error={enter.error} />)}
        <Button type="submit" variant="main" disabled={enter.isPending || key.trim() === ''}>
          {enter.isPending ? w.busy : w.submit}
        </Button>
      </form>
    </main>
  );
}
