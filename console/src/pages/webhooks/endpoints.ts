// Endpoints of the account: their types, their form, and their health.
import type { components } from '../../api/openapi';
import type { Tone } from '../../ui';

export type Endpoint = components['schemas']['WebhookEndpoint'];
export type Delivery = components['schemas']['EndpointDelivery'];
export type EventType = components['schemas']['EndpointEvents'][number];

export const path = '/v1/webhooks/endpoints';

export const eventTypes: readonly EventType[] = ['task.completed', 'task.failed', 'task.cancelled', 'balance.low', 'key.quota_low'];

/** The values of the form. */
export interface Settings {
  url: string;
  events: readonly EventType[];
  description: string;
  balanceLow: string;
}

export function settingsOf(endpoint: Endpoint | undefined): Settings {
  return {
    url: endpoint?.url ?? '',
    events: endpoint?.events ?? ['task.completed', 'task.failed'],
    description: endpoint?.description ?? '',
    balanceLow: endpoint?.balance_low ?? '',
  };
}

/** The body that creates an endpoint with these settings, or changes one to them. */
export function bodyOf(settings: Settings) {
  return {
    url: settings.url.trim(),
    events: eventTypes.filter((type) => settings.events.includes(type)),
    description: settings.description.trim() || null,
    balance_low: settings.balanceLow.trim() || null,
  };
}

export type Health = 'enabled' | 'failing' | 'switchedOff' | 'gone' | 'gaveUp';

export function healthOf(endpoint: Endpoint): Health {
  if (endpoint.enabled) return endpoint.failing_since === null ? 'enabled' : 'failing';
  if (endpoint.disabled_reason === 'gone') return 'gone';
  return endpoint.disabled_reason === 'failing' ? 'gaveUp' : 'switchedOff';
}

export const tones: Record<Health, Tone> = { enabled: 'good', failing: 'bad', switchedOff: 'neutral', gone: 'bad', gaveUp: 'bad' };

export const deliveryTones: Record<Delivery['state'], Tone> = { pending: 'busy', delivered: 'good', failed: 'bad' };

/** The delay before deliveries are read again, in milliseconds: a few seconds while an attempt is running or due soon.
 * During an attempt, the next one is due in a minute. */
export function nextLook(deliveries: readonly Delivery[], now: number): number | false {
  const due = deliveries.some((d) => d.next_attempt_at !== null && d.next_attempt_at < now + 90);
  return due ? 3_000 : false;
}

/** Indents JSON. Other texts stay as they are. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
