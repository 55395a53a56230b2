// The settings of a key, in the form and in the API.
import type { Key, Scope } from '../../api/types';

export const scopes: readonly Scope[] = ['generate', 'read', 'manage'];

export interface Settings {
  name: string;
  scopes: Scope[];
  unlimited: boolean;
  quota: string;
  day: string;
  week: string;
  month: string;
  rate: string;
  inFlight: string;
  models: string;
  addresses: string;
  expires: string;
  group: string;
  strict: boolean;
}

const lines = (text: string) => text.split('\n').map((line) => line.trim()).filter(Boolean);
export { lines as linesOf };

/** Formats Unix seconds for a datetime-local field. */
function localTime(unix: number | null): string {
  if (unix === null) return '';
  const at = new Date(unix * 1000);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function settingsOf(key: Key): Settings {
  return {
    name: key.name,
    scopes: [...key.scopes],
    unlimited: key.unlimited,
    quota: key.quota ?? '',
    day: key.caps.day ?? '',
    week: key.caps.week ?? '',
    month: key.caps.month ?? '',
    rate: key.rate?.toString() ?? '',
    inFlight: key.in_flight?.toString() ?? '',
    models: key.models.join('\n'),
    addresses: key.allow_ips.join('\n'),
    expires: localTime(key.expires_at),
    group: key.group ?? '',
    strict: key.strict,
  };
}

/** The settings that the form for a new key starts with: the limits of the session's key, which the new key may not
 * exceed. Few programs manage keys, so that scope has to be chosen. */
export function newSettings(maker: Key | null): Settings {
  if (maker) return { ...settingsOf(maker), name: '', quota: '', scopes: maker.scopes.filter((scope) => scope !== 'manage') };
  return { name: '', scopes: ['generate', 'read'], unlimited: true, quota: '', day: '', week: '', month: '', rate: '', inFlight: '', models: '', addresses: '', expires: '', group: '', strict: false };
}

const text = (value: string) => value.trim() || null;
const number = (value: string) => (value === '' ? null : Number(value));
const list = (value: string) => (lines(value).length ? lines(value) : null);

// The fields of the API, each with its value from the form. Null means no limit.
const fields = {
  name: (s: Settings) => s.name.trim(),
  scopes: (s: Settings) => scopes.filter((scope) => s.scopes.includes(scope)),
  rate: (s: Settings) => number(s.rate),
  in_flight: (s: Settings) => number(s.inFlight),
  models: (s: Settings) => list(s.models),
  allow_ips: (s: Settings) => list(s.addresses),
  expires_at: (s: Settings) => (s.expires === '' ? null : Math.floor(new Date(s.expires).getTime() / 1000)),
  group: (s: Settings) => text(s.group),
  strict: (s: Settings) => s.strict,
  caps: (s: Settings) => ({ day: text(s.day), week: text(s.week), month: text(s.month) }),
};

export type Body = Record<string, unknown>;

export function newKey(s: Settings): Body {
  const body: Body = s.unlimited ? { unlimited: true } : { quota: s.quota.trim() };
  for (const [name, read] of Object.entries(fields)) {
    const value = read(s);
    if (value !== null) body[name] = value;
  }
  return body;
}

/** The fields that the person has changed. Other fields may have been changed elsewhere meanwhile, and are left out. */
export function changes(key: Key, s: Settings): Body {
  const before = settingsOf(key);
  const body: Body = {};
  if (s.unlimited && !before.unlimited) body.unlimited = true;
  if (!s.unlimited && (before.unlimited || s.quota.trim() !== before.quota)) body.quota = s.quota.trim();
  for (const [name, read] of Object.entries(fields)) {
    const value = read(s);
    if (JSON.stringify(value) !== JSON.stringify(read(before))) body[name] = value;
  }
  return body;
}

/** Whether a pattern matches a name. * stands for any text. */
export function matches(pattern: string, name: string): boolean {
  const parts = pattern.split('*');
  const first = parts.shift() ?? '';
  if (parts.length === 0) return pattern === name;
  const last = parts.pop() ?? '';
  if (!name.startsWith(first) || !name.endsWith(last) || first.length + last.length > name.length) return false;
  let rest = name.slice(first.length, name.length - last.length);
  for (const part of parts) {
    const at = rest.indexOf(part);
    if (at < 0) return false;
    rest = rest.slice(at + part.length);
  }
  return true;
}
