// The frame of all pages but the one to sign in: navigation, who is signed in, and the
// line that says that the service is away.
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useAway } from '../api/client';
import type { Session } from '../api/types';
import { mayUse, sessionQuery, signOut } from '../session';
import { Button, Logo } from '../ui';
import { words } from '../words';

const w = words.shell;

function pages(session: Session) {
  if (session.operator) {
    return [
      { to: '/operator', label: w.operator },
      { to: '/operator/channels', label: w.channels },
      { to: '/operator/accounts', label: w.accounts },
      { to: '/operator/books', label: w.books },
      { to: '/operator/audit', label: w.audit },
    ] as const;
  }
  const reads = mayUse(session, 'read');
  const manages = mayUse(session, 'manage');
  return [
    ...(reads ? ([{ to: '/playground', label: w.playground }, { to: '/tasks', label: w.tasks }] as const) : []),
    ...(manages ? ([{ to: '/keys', label: w.keys }] as const) : []),
    { to: '/account', label: w.account } as const,
    ...(reads ? ([{ to: '/usage', label: w.usage }] as const) : []),
  ];
}

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
    if (session === null) void navigate({ to: '/sign-in', search: { to: href } });
    // Only the end of the session leads away.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [session]);
  const resolved = useRouterState({ select: (s) => (s.resolvedLocation ?? s.location).pathname });
  const shown = useRef(resolved);
  useEffect(() => {
    // A link that led to another page is gone with its page: the focus goes to the new one.
    if (resolved !== shown.current && document.activeElement === document.body) main.current?.focus({ preventScroll: true });
    shown.current = resolved;
  }, [resolved]);
  useEffect(() => setOpen(false), [path]);

  if (!session) return null;
  const who = session.operator ? w.theOperator : `${session.account?.name} · ${session.key?.name}`;
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
        <nav aria-label={w.navigation}>
          {pages(session).map((page) => (
            <Link key={page.to} to={page.to} activeOptions={{ exact: page.to === '/operator' }}>
              {page.label}
            </Link>
          ))}
        </nav>
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
        <Outlet />
      </main>
    </div>
  );
}
