// The types of answers. Those of the public API are generated from its OpenAPI document.
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

/** The roles of operators. Each role includes those before it. */
export const roles = ['read', 'operate', 'admin'] as const;
export type Role = (typeof roles)[number];

/** The session of the holder of a key, or of an operator. */
export interface Session {
  operator: boolean;
  /** The operator's name and role. */
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
