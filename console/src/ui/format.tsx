// Formats times, durations and amounts for people.
import { useEffect, useState } from 'react';
import { words } from '../words';

const locale = 'en-GB';
const day = { year: 'numeric', month: 'short', day: 'numeric' } as const;
const full = { ...day, hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'shortOffset' } as const;
const fullLocal = new Intl.DateTimeFormat(locale, full);
const fullUTC = new Intl.DateTimeFormat(locale, { ...full, timeZone: 'UTC' });
const moment = { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' } as const;
const short = new Intl.DateTimeFormat(locale, moment);
const shortUTC = new Intl.DateTimeFormat(locale, { ...moment, timeZone: 'UTC' });
const exact = new Intl.DateTimeFormat(locale, { ...moment, second: '2-digit' });

/** Makes a phrase of the API begin like a sentence. */
export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// Intl writes GMT+1, and GMT+0. Logs and our own texts write UTC+1, and UTC.
const offsetToUTC = (text: string) => text.replace(/GMT(\+0$)?/, 'UTC');

/** A moment with its seconds and its time zone: 1 Mar 2026, 13:00:00 UTC+1. */
export function formatTime(unix: number, utc = false): string {
  return offsetToUTC((utc ? fullUTC : fullLocal).format(unix * 1000));
}

/** The offset of a time zone at a moment: UTC+1. The default is the zone of the browser, now. */
export function zoneName(unix = Date.now() / 1000, timeZone?: string): string {
  const parts = new Intl.DateTimeFormat(locale, { timeZone, timeZoneName: 'shortOffset' }).formatToParts(unix * 1000);
  return offsetToUTC(parts.find((part) => part.type === 'timeZoneName')?.value ?? '');
}

/** Formats seconds as "3 s", "4 min 12 s", "2 h 5 min" or "3 d 4 h". */
export function formatDuration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return s % 60 && s < 600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h${Math.floor((s % 3600) / 60) ? ` ${Math.floor((s % 3600) / 60)} min` : ''}`;
  return `${Math.floor(s / 86400)} d${Math.floor((s % 86400) / 3600) ? ` ${Math.floor((s % 86400) / 3600)} h` : ''}`;
}

/** A moment. Its title has the seconds and the time zone. It is shown in UTC beside days of UTC, and with seconds where events
 * follow each other. */
export function Time({ unix, utc = false, seconds = false }: { unix: number | null | undefined; utc?: boolean; seconds?: boolean }) {
  if (unix === null || unix === undefined) return <span>{words.ui.none}</span>;
  return (
    <time dateTime={new Date(unix * 1000).toISOString()} title={formatTime(unix, utc)}>
      {(utc ? shortUTC : seconds ? exact : short).format(unix * 1000)}
    </time>
  );
}

/** The current time in Unix seconds, updated at an interval in milliseconds. */
export function useNow(every = 1000): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now() / 1000), every);
    return () => window.clearInterval(timer);
  }, [every]);
  return now;
}

/** The time since a moment. */
export function Ago({ unix }: { unix: number | null | undefined }) {
  const now = useNow(10_000);
  if (unix === null || unix === undefined) return <span>{words.ui.never}</span>;
  return (
    <time dateTime={new Date(unix * 1000).toISOString()} title={formatTime(unix)}>
      {words.ui.ago(formatDuration(now - unix))}
    </time>
  );
}

const digits = { minimumFractionDigits: 2, maximumFractionDigits: 6 };
const plain = new Intl.NumberFormat(locale, digits);

/** Formats an amount of the currency, with two to six decimals. An operator may configure any name as the currency, but
 * Intl throws unless it has three letters. Other names follow the number. */
export function formatAmount(amount: number | string, currency: string): string {
  if (!/^[a-z]{3}$/i.test(currency)) return `${plain.format(Number(amount))} ${currency}`;
  return new Intl.NumberFormat(locale, { style: 'currency', currency, currencyDisplay: 'narrowSymbol', ...digits }).format(Number(amount));
}

export function Amount({ value, currency }: { value: number | string | null | undefined; currency: string }) {
  if (value === null || value === undefined) return <span>{words.ui.none}</span>;
  return <span className="amount">{formatAmount(value, currency)}</span>;
}
