// The shapes of the admin API's answers, which is in no document of its own: see
// docs/operations.md.
import type { Delivery, List, Task } from './types';

export type Action = 'retry' | 'reroute' | 'fail' | 'poll_now' | 'redeliver';

export interface Stuck {
  reason: string;
  /** The task's channels that an operator has disabled. */
  drained?: string[];
  since: number | null;
  until: number | null;
  actions: Action[];
}

/** What an open task waits for, until when, and what happens then by itself. */
export interface Wait {
  kind: string;
  step: string;
  until: number | null;
  then: string;
  actions: Action[];
  channels: string[];
}

export interface OperatorTask extends Task {
  account: string;
  account_name: string;
  key: string;
  /** Of the last attempt. */
  channel: string | null;
  waits_for: Wait | null;
  stuck: Stuck | null;
  erased_at?: number;
}

/** A page of tasks. What is on all pages is counted where that is asked for. */
export interface TaskPage extends List<OperatorTask> {
  total?: number;
  reasons?: Record<string, number>;
}

export interface Attempt {
  n: number;
  channel: string;
  provider: string;
  vendor_job_id: string | null;
  external_id: string;
  state: string;
  error: string | null;
  started: number;
  accepted: number | null;
  ended: number | null;
}

export interface LedgerEntry {
  id: string;
  kind: string;
  amount: string;
  task: string | null;
  key: string | null;
  at: number;
  reference: string | null;
}

/** A task's whole story. */
export interface Story extends OperatorTask {
  actions: Action[];
  unreadable?: boolean;
  attempts: Attempt[];
  ledger: LedgerEntry[];
  deliveries: Delivery[];
  events: { at: number; what: string; detail: string }[];
  workflow: { id: string; run_id: string | null; url: string | null };
}

/** What a command for many tasks would do, or the job that it began. */
export interface Matched {
  matched: number;
  tasks?: string[];
  job?: string | null;
}

/** How far a job for many tasks has come. */
export interface JobStatus {
  job: string;
  state: 'running' | 'done' | 'stopped';
  progress: { done: number; skipped: number; failed: number } | null;
  workflow: Story['workflow'];
}

export interface Channel {
  name: string;
  provider: string; // empty: it is in the settings no more
  models: string[];
  priority: number;
  weight: number;
  concurrency: number;
  enabled: boolean;
  state: 'up' | 'failing' | 'broken' | 'probing' | 'disabled' | 'gone';
  reason: string | null;
  disabled_reason: string | null;
  since: number | null;
  next_probe_at: number | null;
  in_flight: number;
  waiting: number;
  oldest: number | null;
  polling: number;
  error_rate: number | null;
  last_error: string | null;
  last_error_at: number | null;
}

export interface Account {
  id: string;
  name: string;
  group: string;
  available: string;
  held: string;
  spent: string;
  rate: number | null;
  in_flight: number | null;
  unpaid: string | null;
  uploads_per_day: number | null;
  erase_inputs: boolean;
  suspended: boolean;
  created: number;
  abandoned?: { jobs: number; cost: string };
}

export interface AuditEntry {
  id: string;
  at: number;
  by: string;
  by_name: string | null;
  action: string;
  object: string;
  object_name: string | null;
  account: string | null;
  account_name: string | null;
  before: unknown;
  after: unknown;
  address: string | null;
  request_id: string;
}

export interface LedgerReport {
  ok: boolean;
  checked: number;
  problems: string[];
}

export interface Readiness {
  status: 'ready' | 'degraded' | 'unavailable';
  degraded?: string[];
  error?: { message: string };
}
