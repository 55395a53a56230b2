// The session of the person who is signed in. The session itself is a cookie that scripts cannot read.
import { QueryClient, queryOptions, useQuery, type Query } from '@tanstack/react-query';
import { ApiError, AwayError, call, newKey, rememberToken, whenRefused } from './api/client';
import { queryKeys } from './api/queryKeys';
import { roles, type Role, type Scope, type Session } from './api/types';
import { forgetRequests } from './requests';

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // A request that the API refused would be refused again. Only failures of the service are retried.
      retry: (count, error) => error instanceof AwayError || (error instanceof ApiError && error.status >= 500 && count < 3),
      retryDelay: (count) => Math.min(1000 * 2 ** count, 5000),
      networkMode: 'always',
    },
    mutations: { retry: false, networkMode: 'always' },
  },
});

// Matches all queries except that of the session.
const others = { predicate: (query: Query) => query.queryKey[0] !== queryKeys.session[0] };

// Removes everything that the previous session has read and typed. The query of the session stays, because observers of
// a removed query get no more updates.
function forget(): void {
  queryClient.removeQueries(others);
  queryClient.getMutationCache().clear();
  forgetRequests();
}

// The last sign-in of this browser, in any tab. A browser that has never signed in does not ask for a session.
const lastSignIn = 'mediagate.signed-in';

async function readSession(): Promise<Session | null> {
  const signIn = localStorage.getItem(lastSignIn);
  const session = signIn ? await liveSession() : null;
  // If another tab has signed in meanwhile, this answer is about an older session.
  if (localStorage.getItem(lastSignIn) !== signIn) return readSession();
  const before = queryClient.getQueryData<Session>(queryKeys.session);
  if (session) {
    rememberToken(session.csrf);
    if (before && before.csrf !== session.csrf) renew(before, session);
    const isNarrowed = before?.key?.id === session.key?.id && before?.key?.scopes.some((scope) => !mayUse(session, scope));
    if (!isNarrowed) return session;
    await call<void>('DELETE', '/console/session'); // the open pages may need a scope that the key no longer has
  }
  if (signIn || before) {
    ended = true;
    localStorage.removeItem(lastSignIn);
    forget();
  }
  return null;
}

/** The session of the cookie, or null if it has ended. */
async function liveSession(): Promise<Session | null> {
  try {
    return await call<Session>('GET', '/console/session');
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return null;
    throw error;
  }
}

// Continues with the session of a sign-in in another tab. Data of another person is not shown.
function renew(before: Session, session: Session): void {
  if (before.key?.id === session.key?.id && before.operator === session.operator && before.name === session.name) {
    void queryClient.invalidateQueries(others); // some queries failed if the previous session had ended
    return;
  }
  void queryClient.resetQueries(others);
  forgetRequests();
}

export const sessionQuery = queryOptions({ queryKey: queryKeys.session, queryFn: readSession, staleTime: 60_000, refetchOnWindowFocus: 'always' });

/** The session's key, with the used amounts of its limits. The call needs no scope. */
export const ownKeyQuery = queryOptions({ queryKey: queryKeys.ownKey, queryFn: async ({ signal }) => (await call<Session>('GET', '/console/session', { signal })).key });

function begin(session: Session): void {
  localStorage.setItem(lastSignIn, newKey());
  rememberToken(session.csrf);
  ended = false;
  queryClient.setQueryData(queryKeys.session, session);
}

/** The session, for pages that only signed-in people see. */
export function useSession(): Session {
  const { data } = useQuery(sessionQuery);
  if (!data) throw new Error('no session');
  return data;
}

/** Continues with the session of a sign-in by OpenID Connect, which set the cookie. */
export async function resumeSession(): Promise<Session> {
  const session = await call<Session>('GET', '/console/session');
  forget(); // of the previous session
  begin(session);
  return session;
}

export async function signIn(credential: { key: string } | { link: string }): Promise<Session> {
  const session = await call<Session>('POST', '/console/session', { body: credential });
  forget(); // of the previous session
  begin(session);
  return session;
}

/** Continues with another key of the same account. The open pages stay. */
export async function renewSession(key: string): Promise<void> {
  begin(await call<Session>('POST', '/console/session', { body: { key } }));
}

export async function signOut(): Promise<void> {
  await call<void>('DELETE', '/console/session');
  localStorage.removeItem(lastSignIn);
  forget();
  queryClient.setQueryData(queryKeys.session, null);
}

// Whether the session ended on its own. The sign-in page then says so.
let ended = false;
export function sessionEnded(): boolean {
  return ended;
}
// A refused call may mean that the session has ended, or that it belonged to an older session. So the session is read
// again.
whenRefused(() => void queryClient.invalidateQueries({ queryKey: queryKeys.session }));

export function mayUse(session: Session, scope: Scope): boolean {
  return session.operator || (session.key?.scopes.includes(scope) ?? false);
}

/** Whether the session's role allows what needs the given role. It is true for holders of keys, whose scopes decide
 * instead. */
export function useMay(role: Role): boolean {
  const session = useSession();
  return !session.operator || (session.role !== null && roles.indexOf(session.role) >= roles.indexOf(role));
}
