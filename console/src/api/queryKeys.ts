// The keys of the query cache. They are all in one place, because two requests that share a key overwrite each other's
// answers. Keys with the same beginning are invalidated together.
import type { Query } from './client';

export const queryKeys = {
  session: ['session'],
  oidc: ['oidc'],
  ready: ['ready'],
  document: ['openapi'],
  models: ['models'],
  contract: (model: string, endpoint: string | undefined) => ['contract', model, endpoint],
  quote: (endpoint: string | undefined, body: unknown) => ['quote', endpoint, body],

  account: ['account'],
  /** The amounts left of the session key's limits, of the key and of its account. */
  balances: ['balance'],
  ownKey: ['balance', 'key'],
  leftBalance: ['balance', 'left'],
  webhookSecret: ['webhook secret'],
  /** Everything about endpoints. */
  endpoints: ['endpoints'],
  endpoint: (id: string) => ['endpoints', id],
  endpointDeliveries: (id: string, state: string) => ['endpoints', id, 'deliveries', state],
  usage: (query: Query) => ['usage', query],
  statement: (path: string, query: Query) => ['statement', path, query],

  /** All lists of keys, each by its path and account. */
  keys: ['keys'],
  keyList: (path: string, account: string | undefined) => ['keys', 'list', path, account],
  keyNames: ['keys', 'names'],

  /** All lists of tasks. */
  tasks: ['tasks'],
  taskList: (query: Query) => ['tasks', 'list', query],
  callbacks: (state: string) => ['tasks', 'callbacks', state],
  sources: (query: Query) => ['tasks', 'sources', query],
  task: (id: string) => ['task', id],
  request: (id: string) => ['request', id],
  earlier: (model: string) => ['tasks', 'earlier', model],
  anyTask: ['tasks', 'any'],
  guides: ['guides'],
  art: (id: string) => ['art', id],
  artAt: (id: string, status: string) => ['art', id, status],
  deliveries: (id: string) => ['deliveries', id],

  channels: ['admin', 'channels'],
  adminAccounts: (query: Query) => ['admin', 'accounts', query],
  adminAccount: (id: string) => ['admin', 'account', id],
  adminLedger: (account: string) => ['admin', 'ledger', account],
  adminUsage: (by: string) => ['admin', 'usage', by],
  audit: (query: Query) => ['admin', 'audit', query],
  /** All lists of tasks of operators, and their pages of one task. */
  adminTasks: ['admin', 'tasks'],
  stuckCount: ['admin', 'tasks', 'stuck count'],
  adminTaskList: (query: Query) => ['admin', 'tasks', 'list', query],
  taskJob: (id: string) => ['admin', 'task job', id],
  story: (id: string) => ['admin', 'tasks', 'story', id],
} as const;
