// The types of the admin API's answers, generated from its OpenAPI document.
import type { components } from './openapi';

type Schemas = components['schemas'];
export type Action = Schemas['CommandName'];
export type Stuck = Schemas['StuckTask'];
export type OperatorTask = Schemas['OperatorTask'];
export type TaskPage = Schemas['OperatorTaskList'];
export type LedgerEntry = Schemas['LedgerEntry'];
export type Story = Schemas['TaskStory'];
export type JobStatus = Schemas['JobStatus'];
export type Channel = Schemas['Channel'];
export type AuditEntry = Schemas['AuditEntry'];
export type LedgerReport = Schemas['LedgerReport'];

/** An account. Only the answer for a single account includes its abandoned jobs. */
export type Account = Schemas['Account'] & Partial<Pick<Schemas['OperatedAccount'], 'abandoned'>>;

/** Why a command for many tasks would skip a task. */
export type SkipReason = keyof Schemas['SkippedTasks'];

/** What a command for many tasks would do, or the job that it began. */
export type Matched = Omit<Schemas['MatchedTasks'], 'job'> & { job?: Schemas['StartedJob']['job'] | null };

/** The readiness that the console shows, also when the API does not answer. */
export type Readiness = Pick<Schemas['Readiness'], 'status' | 'degraded'> & { error?: { message: string } };
