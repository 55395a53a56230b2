import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { ApiError, call } from '../api/client';
import { queryKeys } from '../api/queryKeys';
import { resumeSession, sessionEnded, signIn } from '../session';
import { Button, Field, Logo, Problem, usePageTitle } from '../ui';
import { words } from '../words';

const w = words.signIn;

// The link that the standalone prints carries its token behind the #, which browsers do not send to servers.
const inAddress = () => new URLSearchParams(window.location.hash.slice(1)).get('link');

// A browser that returns from the identity provider already has a session.
const comesBack = () => window.location.hash === '#signed-in';
// The page to open after a sign-in at the identity provider, which does not pass it on.
const wanted = 'mediagate.to';

/** Whether the API refused the key or the link. */
const isRefused = (error: unknown) => error instanceof ApiError && error.status === 401;

export function SignIn() {
  usePageTitle(w.title);
  const navigate = useNavigate();
  const { to } = useSearch({ from: '/sign-in' });
  const [key, setKey] = useState('');
  const [byLink] = useState(inAddress);
  const enter = useMutation({
    mutationFn: (credential: { key: string } | { link: string } | 'resume') => (credential === 'resume' ? resumeSession() : signIn(credential)),
    onSuccess: (_, credential) => {
      const before = sessionStorage.getItem(wanted);
      sessionStorage.removeItem(wanted);
      return navigate({ to: (credential === 'resume' ? before : to) ?? '/', hash: '', replace: true });
    },
  });
  const { data: oidc } = useQuery({
    queryKey: queryKeys.oidc,
    queryFn: ({ signal }) => call<{ provider: string | null }>('GET', '/console/oidc', { signal }),
    staleTime: Infinity,
  });
  useEffect(() => {
    // The link works once, and React may run an effect twice.
    const link = inAddress();
    const credential = comesBack() ? 'resume' : link && { link };
    if (!credential) return;
    window.history.replaceState(window.history.state, '', window.location.pathname + window.location.search);
    enter.mutate(credential);
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
        {/* Password managers store the key under this name. */}
        <input type="text" name="username" autoComplete="username" value={words.shell.product} readOnly hidden />
        <Field label={w.key} hint={w.hint} name="key" type="password" autoComplete="current-password" spellCheck={false} required value={key} onChange={(e) => setKey(e.target.value)} />
        {enter.isError && (byLink && !key && isRefused(enter.error) ? <p role="alert" className="note bad">{w.linkUsed}</p> : <Problem error={enter.error} />)}
        <Button type="submit" variant="main" disabled={enter.isPending || key.trim() === ''}>
          {enter.isPending ? w.busy : w.submit}
        </Button>
        {oidc?.provider && (
          <div className="field">
            <a className="button" href="/console/oidc/start" onClick={() => to && sessionStorage.setItem(wanted, to)}>
              {w.byProvider(oidc.provider)}
            </a>
            <p className="hint">{w.byProviderHint}</p>
          </div>
        )}
      </form>
    </main>
  );
}
