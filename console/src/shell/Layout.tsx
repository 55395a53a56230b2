// The frame of all pages except the sign-in page: the navigation, the session, and the note that the service cannot be
// reached.
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useAway } from '../api/client';
import { sessionEnded, sessionQuery, signOut } from '../session';
import { Button, Logo } from '../ui';
import { words } from '../words';
import { StuckCount } from '../pages/operator/StuckCount';
import { MoneyNotice } from './MoneyNotice';
import { mayOpen, pagesOf } from './pages';

const w = words.shell;

export function Layout() {
  const { data: session } = useQuery(sessionQuery);
  const away = useAway();
  const navigate = useNavigate();
  const path = useRouterState({ select: (s) => s.location.pathname });
  const href = useRouterState({ select: (s) => s.location.href });
  const [open, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const leave = useMutation({ mutationFn: signOut });

  useEffect(() => {
    // A session that ended on its own continues on the same page after the next sign-in. After Sign out, the next
    // session starts on its start page.
    if (session === null) void navigate({ to: '/sign-in', search: sessionEnded() ? { to: href } : {} });
    // Another person has signed in, in another tab.
    else if (session && !mayOpen(session, path)) void navigate({ to: '/' });
    // Only a change of the session navigates.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [session]);
  const resolved = useRouterState({ select: (s) => (s.resolvedLocation ?? s.location).pathname });
  const shown = useRef(resolved);
  useEffect(() => {
    // The link that was followed is gone, and the focus with it. It goes to the new page.
    if (resolved !== shown.current && document.activeElement === document.body) main.current?.focus({ preventScroll: true });
    shown.current = resolved;
  }, [resolved]);
  useEffect(() => setOpen(false), [path]);

  if (!session) return null;
  const ofTask = path.startsWith('/operator/tasks/');
  const who = session.operator ? w.theOperator(session.name, session.role) : `${session.account?.name} · ${session.key?.name}`;
  return (
    <div className="frame">
      <a className="skip" href="#content" onClick={(e) => (e.preventDefault(), main.current?.focus())}>
        {w.skip}
      </a>
      <header className="side" data-open={open}>
        <Link to="/" className="brand">
          <Logo /> {w.product}
        </Link>
        <button type="button" className="menu" aria-expanded={open} onClick={() => setOpen(!open)}>
          {w.menu}
        </button>
        {session.operator && <p className="installation">{w.installation(window.location.host, session.version)}</p>}
        <nav aria-label={w.navigation}>
          {pagesOf(session).map((page) => (
            <Link
              key={page.to}
              to={page.to}
              className={page.to === '/operator' && ofTask ? 'active' : undefined}
              aria-current={page.to === '/operator' && ofTask ? 'true' : undefined}
              activeOptions={{ exact: page.to === '/operator', includeSearch: false }}
            >
              <span>{page.label}</span> {page.to === '/operator' && <StuckCount key={path} />}
            </Link>
          ))}
        </nav>
        {!session.operator && (
          <nav className="guides" aria-label={w.guides}>
            <a href="/docs" target="_blank" rel="noreferrer">
              {w.docs}
            </a>
            <a href="/docs/reference" target="_blank" rel="noreferrer">
              {w.reference}
            </a>
            <a href="/docs/models" target="_blank" rel="noreferrer">
              {w.models}
            </a>
          </nav>
        )}
        <div className="who">
          <p>{w.signedInAs(who)}</p>
          <Button variant="quiet" onClick={() => leave.mutate()}>
            {w.signOut}
          </Button>
        </div>
      </header>
      <main id="content" ref={main} tabIndex={-1}>
        <div role="status" className="awayline">
          {away && <p className="note warn">{w.away}</p>}
        </div>
        <MoneyNotice session={session} />
        <Outlet />
      </main>
    </div>
  );
}
