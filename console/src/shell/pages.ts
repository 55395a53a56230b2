// The pages that a session may open. The first one is its start page.
import type { Session } from '../api/types';
import { words } from '../words';

const w = words.shell;

export function pagesOf(session: Session) {
  if (session.operator) {
    return [
      { to: '/operator', label: w.operator },
      { to: '/operator/channels', label: w.channels },
      { to: '/operator/accounts', label: w.accounts },
      { to: '/operator/books', label: w.books },
      { to: '/operator/audit', label: w.audit },
    ] as const;
  }
  const reads = session.key?.scopes.includes('read');
  const manages = session.key?.scopes.includes('manage');
  return [
    ...(reads ? ([{ to: '/playground', label: w.playground }, { to: '/tasks', label: w.tasks }] as const) : []),
    ...(manages ? ([{ to: '/keys', label: w.keys }, { to: '/webhooks', label: w.webhooks }] as const) : []),
    { to: '/account', label: w.account } as const,
    ...(reads ? ([{ to: '/usage', label: w.usage }] as const) : []),
  ];
}

export function homeOf(session: Session) {
  return pagesOf(session)[0]!.to;
}

/** Whether the session may open a path: that of one of its pages, or one below it. */
export function mayOpen(session: Session, path: string): boolean {
  return pagesOf(session).some((page) => path === page.to || path.startsWith(`${page.to}/`));
}
