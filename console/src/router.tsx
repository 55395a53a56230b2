// The pages and their paths. Each page is loaded when it is first opened.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router';
import type { Session } from './api/types';
import { queryClient, sessionQuery } from './session';
import { Broken, Missing } from './shell/Broken';
import { Layout } from './shell/Layout';
import { loadPart } from './shell/load';
import { homeOf, mayOpen } from './shell/pages';
import { SignIn } from './pages/SignIn';

const root = createRootRoute({ notFoundComponent: Missing, errorComponent: Broken });

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  component: SignIn,
  validateSearch: (search): { to?: string } => (typeof search.to === 'string' && search.to.startsWith('/') ? { to: search.to } : {}),
});

// All pages within the frame need a session.
const frame = createRoute({
  getParentRoute: () => root,
  id: 'frame',
  component: Layout,
  beforeLoad: async ({ location }): Promise<{ session: Session }> => {
    const session = await queryClient.ensureQueryData(sessionQuery);
    if (!session) throw redirect({ to: '/sign-in', search: location.pathname === '/' ? {} : { to: location.href }, hash: location.hash });
    // The path may be one that another person had open before.
    if (location.pathname !== '/' && !mayOpen(session, location.pathname)) throw redirect({ to: '/', replace: true });
    return { session };
  },
});

/** The component of a page. */
function page<M extends Record<string, any>, N extends keyof M>(load: () => Promise<M>, name: N) {
  return lazyRouteComponent(() => loadPart(load), name);
}

const text = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? String(value) : undefined);

/** Reads the named search parameters as texts. */
function texts<N extends string>(...names: N[]) {
  return (search: Record<string, unknown>): Partial<Record<N, string>> => {
    const read: Partial<Record<N, string>> = {};
    for (const name of names) {
      const value = text(search[name]);
      if (value !== undefined && value !== '') read[name] = value;
    }
    return read;
  };
}

const home = createRoute({
  getParentRoute: () => frame,
  path: '/',
  beforeLoad: ({ context }) => {
    throw redirect({ to: homeOf(context.session), replace: true });
  },
});

// `from` is a task whose request fills in the form. `source` is a task to work on, and `clip` the number of its song.
// `input` is a task with a file to use, and `file` the number of the file.
const playground = createRoute({
  getParentRoute: () => frame,
  path: '/playground',
  component: page(() => import('./pages/playground/Playground'), 'Playground'),
  validateSearch: texts('model', 'type', 'tag', 'endpoint', 'from', 'source', 'clip', 'input', 'file', 'task'),
});
const tasks = createRoute({
  getParentRoute: () => frame,
  path: '/tasks',
  component: page(() => import('./pages/tasks/Tasks'), 'Tasks'),
  validateSearch: texts('view', 'status', 'model', 'type', 'key', 'reference', 'source', 'webhook', 'created_after', 'created_before', 'after'),
});
const task = createRoute({
  getParentRoute: () => frame,
  path: '/tasks/$id',
  component: page(() => import('./pages/tasks/TaskPage'), 'TaskPage'),
});
const keys = createRoute({
  getParentRoute: () => frame,
  path: '/keys',
  component: page(() => import('./pages/keys/Keys'), 'Keys'),
});
const account = createRoute({
  getParentRoute: () => frame,
  path: '/account',
  component: page(() => import('./pages/account/Account'), 'Account'),
});
const webhooks = createRoute({
  getParentRoute: () => frame,
  path: '/webhooks',
  component: page(() => import('./pages/webhooks/Webhooks'), 'Webhooks'),
});
const endpoint = createRoute({
  getParentRoute: () => frame,
  path: '/webhooks/$id',
  component: page(() => import('./pages/webhooks/EndpointPage'), 'EndpointPage'),
});
const usage = createRoute({
  getParentRoute: () => frame,
  path: '/usage',
  component: page(() => import('./pages/usage/Usage'), 'Usage'),
  validateSearch: texts('from', 'to', 'by', 'model', 'key'),
});

const operator = createRoute({
  getParentRoute: () => frame,
  path: '/operator',
});
const stuck = createRoute({
  getParentRoute: () => operator,
  path: '/',
  component: page(() => import('./pages/operator/Stuck'), 'Stuck'),
  validateSearch: texts('q', 'status', 'model', 'type', 'account', 'channel', 'webhook', 'stuck', 'reference', 'source', 'created_after', 'created_before', 'after'),
});
const operatorTask = createRoute({
  getParentRoute: () => operator,
  path: '/tasks/$id',
  component: page(() => import('./pages/operator/OperatorTask'), 'OperatorTask'),
});
const channels = createRoute({
  getParentRoute: () => operator,
  path: '/channels',
  component: page(() => import('./pages/operator/Channels'), 'Channels'),
});
const accounts = createRoute({
  getParentRoute: () => operator,
  path: '/accounts',
  component: page(() => import('./pages/operator/Accounts'), 'Accounts'),
  validateSearch: texts('q', 'after'),
});
const operatorAccount = createRoute({
  getParentRoute: () => operator,
  path: '/accounts/$id',
  component: page(() => import('./pages/operator/OperatorAccount'), 'OperatorAccount'),
});
const books = createRoute({
  getParentRoute: () => operator,
  path: '/books',
  component: page(() => import('./pages/operator/Books'), 'Books'),
  validateSearch: texts('from', 'to', 'by'),
});
const audit = createRoute({
  getParentRoute: () => operator,
  path: '/audit',
  component: page(() => import('./pages/operator/Audit'), 'Audit'),
  validateSearch: texts('account', 'by', 'action', 'object', 'from', 'to', 'after'),
});

export const router = createRouter({
  basepath: '/console',
  routeTree: root.addChildren([
    signIn,
    frame.addChildren([home, playground, tasks, task, keys, webhooks, endpoint, account, usage, operator.addChildren([stuck, operatorTask, channels, accounts, operatorAccount, books, audit])]),
  ]),
  defaultPreload: 'intent',
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
