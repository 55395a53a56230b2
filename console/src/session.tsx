// Who is signed in. The session itself is a cookie that no script can read.
import { QueryClient, queryOptions, useQuery, type Query } from '@tanstack/react-query';
import { ApiError, AwayError, call, newKey, rememberToken, whenRefused } from './api/client';
import { queryKeys } from './api/queryKeys';
import { roles, type Role, type Scope, type Session } from './api/types';
import { forgetRequests } from './requests';

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // What the API refuses is refused again; what is away comes back.
      retry: (count, error) => error instanceof AwayError || (error instanceof ApiError && error.status >= 500 && count < 3),
      retryDelay: (count) => Math.min(1000 * 2 ** count, 5000),
      networkMode: 'always',
    },
    mutations: { retry: false, networkMode: 'always' },
  },
});

// All queries but that of the session itself.
const others = { predicate: (query: Query) => query.queryKey[0] !== queryKeys.session[0] };

// Forgets all that was read and typed in the session before.
// The session stays: whoever watches an entry that is taken out hears of it no more.
function forget(): void {
  queryClient.removeQueries(others);
  queryClient.getMutationCache().clear();
  forgetRequests();
}

// The last sign-in of this browser, in any of its tabs. A browser that never signed in does not ask for a session.
const lastSignIn = 'mediagate.signed-in';

async function readSession(): Promise<Session | null> {
  const signIn = localStorage.getItem(lastSignIn);
  const session = signIn ? await liveSession() : null;
  // The answer is about an older session if this tab or another one has signed in meanwhile.
  if (localStorage.getItem(lastSignIn) !== signIn) return readSession();
  const before = queryClient.getQueryData<Session>(queryKeys.session);
  if (session) {
    rememberToken(session.csrf);
    if (before && before.csrf !== session.csrf) renew(before, session);
    const isNarrowed = before?.key?.id === session.key?.id && before?.key?.scopes.some((scope) => !mayUse(session, scope));
    if (!isNarrowed) return session;
    await call<void>('DELETE', '/console/session'); // what is open may not be for the key any more
  }
  if (signIn || before) {
    ended = true;
    localStorage.removeItem(lastSignIn);
    forget();
  }
  return null;
}

/** The session of the cookie; null if it has ended. */
async function liveSession(): Promise<Session | null> {
  try {
    return await call<Session>('GET', '/console/session');
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return null;
    throw error;
  }
}

// Goes on with the session of a sign-in in another tab. Nothing of somebody else who was here is shown.
function renew(before: Session, session: Session): void {
  if (before.key?.id === session.key?.id && before.operator === session.operator && before.name === session.name) {
    void queryClient.invalidateQueries(others); // some have failed if the session before had ended
    return;
  }
  void queryClient.resetQueries(others);
  forgetRequests();
}

export const sessionQuery = queryOptions({ queryKey: queryKeys.session, queryFn: readSession, staleTime: 60_000, refetchOnWindowFocus: 'always' });

/** The key of the session with what it has used of its limits. It needs no scope. */
export const ownKeyQuery = queryOptions({ queryKey: queryKeys.ownKey, queryFn: async ({ signal }) => (await call<Session>('GET', '/console/session', { signal })).key });

function begin(session: Session): void {
  localStorage.setItem(lastSignIn, newKey());
  rememberToken(session.csrf);
  ended = false;
  queryClient.setQueryData(queryKeys.session, session);
}

/** The session of a page that is shown to those who are signed in only. */
export function useSession(): Session {
  const { data } = useQuery(sessionQuery);
  if (!data) throw new Error('no session');
  return data;
}

/** Goes on with the session of a sign-in by OpenID Connect, which ended with a cookie. */
export async function resumeSession(): Promise<Session> {
  const session = await call<Session>('GET', '/console/session');
  forget(); // of whoever was here before
  begin(session);
  return session;
}

export async function signIn(credential: { key: string } | { link: string }): Promise<Session> {
  const session = await call<Session>('POST', '/console/session', { body: credential });
  forget(); // of whoever was here before
  begin(session);
  return session;
}

/** Goes on with another key of the same account, whose pages stay as they are. */
export async function renewSession(key: string): Promise<void> {
  begin(await call<Session>('POST', '/console/session', { body: { key } }));
}

export async function signOut(): Promise<void> {
  await call<void>('DELETE', '/console/session');
  localStorage.removeItem(lastSignIn);
  forget();
  queryClient.setQueryData(queryKeys.session, null);
}

// Whether the session ended by itself: the page to sign in says so.
let ended = false;
export function sessionEnded(): boolean {
  return ended;
}
// The refused call may belong to an older session, so the session is read again.
whenRefused(() => void queryClient.invalidateQueries({ queryKey: queryKeys.session }));

export function mayUse(session: Session, scope: Scope): boolean {
  return session.operator || (session.key?.scopes.includes(scope) ?? false);
}

/** Whether who is signed in may do what needs that role of an operator. The holder of a key is none: scopes decide there. */
export function useMay(role: Role): boolean {
  const session = useSession();
  return !session.operator || (session.role !== null && roles.indexOf(session.role) >= roles.indexOf(role));
}
