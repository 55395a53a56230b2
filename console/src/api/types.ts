// The shapes of answers. Those of the public API come from its document.
import type { components } from './openapi';

type Schemas = components['schemas'];
export type Task = Schemas['Task'];
export type TaskList = Schemas['TaskList'];
export type Item = Schemas['Item'];
export type Result = Schemas['Result'];
export type Source = Schemas['Source'];
export type Button = Schemas['Button'];
export type Key = Schemas['ApiKey'];
export type NewKey = Schemas['NewKey'];
export type KeyChange = Schemas['KeyChange'];
export type Quote = Schemas['Quote'];
export type Contract = Schemas['Contract'];
export type Model = Schemas['ModelItem'];
export type ModelPricing = Schemas['ModelPricing'];
export type Delivery = Schemas['DeliveryAttempt'];
export type WebhookSecret = Schemas['WebhookSecret'];
export type UsageItem = Schemas['UsageItem'];
export type Upload = Schemas['UploadResult'];
export type Art = Schemas['Art'];

export type TaskStatus = Task['status'];
export type TaskType = Task['type'];
export type Scope = Key['scopes'][number];

export interface List<T> {
  object: 'list';
  data: T[];
  has_more: boolean;
}

/** What an operator may do: each role includes the ones before it. */
export const roles = ['read', 'operate', 'admin'] as const;
export type Role = (typeof roles)[number];

/** Who is signed in: the holder of a key, or an operator. */
export interface Session {
  operator: boolean;
  /** What the operator is called, and may do. */
  name: string | null;
  role: Role | null;
  account: { id: string; name: string } | null;
  key: Key | null;
  csrf: string;
  expires_at: number;
  currency: string;
  credits_per_unit: number;
  version: string;
}
