// The components of which pages are made. They are plain HTML elements with our styles: the browser's own dialog,
// select and details are accessible without further work.
import { useRouterState } from '@tanstack/react-router';
import { useEffect, useEffectEvent, useId, useRef, useState, type ButtonHTMLAttributes, type InputHTMLAttributes, type KeyboardEvent, type ReactNode, type SelectHTMLAttributes, type TextareaHTMLAttributes } from 'react';
import { ApiError, AwayError, wordsOf } from '../api/client';
import { words } from '../words';
import { copyText } from './copy';

const w = words.ui;

export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · ${words.shell.product}`;
  }, [title]);
}

export function Logo() {
  return (
    <svg className="logo" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect width="32" height="32" rx="8" className="logo-ground" />
      <path d="M9 9v14M23 9v14M9 16h14" className="logo-line" />
      <path d="M14 12.5v7l6-3.5z" className="logo-fill" />
    </svg>
  );
}

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: 'plain' | 'main' | 'quiet' | 'danger';
}
export function Button({ variant = 'plain', type = 'button', className = '', ...rest }: ButtonProps) {
  return <button type={type} className={`button ${variant} ${className}`} {...rest} />;
}

interface Labelled {
  label: ReactNode;
  hint?: ReactNode;
  error?: string | null | undefined;
}
function useField({ hint, error }: { hint?: ReactNode; error?: string | null | undefined }) {
  const id = useId();
  const described = [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ');
  return { id, props: { id, 'aria-describedby': described || undefined, 'aria-invalid': error ? true : undefined } as const };
}
function Around({ id, label, hint, error, children }: Labelled & { id: string; children: ReactNode }) {
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children}
      {hint && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p className="fault" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

/** A line of text with its label, hint and error. */
export function Field({ label, hint, error, ...rest }: Labelled & InputHTMLAttributes<HTMLInputElement>) {
  const { id, props } = useField({ hint, error });
  return (
    <Around id={id} label={label} hint={hint} error={error}>
      <input {...props} {...rest} />
    </Around>
  );
}

/** A search field, which reports its text once the person stops typing. It reports nothing while another page loads:
 * that would navigate back to this page. */
export function Typed({ value, onChange, ...rest }: Labelled & { value: string; placeholder?: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const leaving = useRouterState({ select: (s) => s.resolvedLocation !== undefined && s.location.pathname !== s.resolvedLocation.pathname });
  const change = useEffectEvent(onChange);
  useEffect(() => {
    if (text === value || leaving) return;
    const timer = window.setTimeout(() => change(text), 400);
    return () => window.clearTimeout(timer);
  }, [text, value, leaving]);
  return <Field {...rest} type="search" autoComplete="off" spellCheck={false} maxLength={255} value={text} onChange={(e) => setText(e.target.value)} />;
}

export function TextArea({ label, hint, error, ...rest }: Labelled & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const { id, props } = useField({ hint, error });
  return (
    <Around id={id} label={label} hint={hint} error={error}>
      <textarea {...props} {...rest} />
    </Around>
  );
}

export function Select({ label, hint, error, options, ...rest }: Labelled & SelectHTMLAttributes<HTMLSelectElement> & { options: readonly (string | { value: string; label: string })[] }) {
  const { id, props } = useField({ hint, error });
  return (
    <Around id={id} label={label} hint={hint} error={error}>
      <select {...props} {...rest}>
        {options.map((o) => {
          const option = typeof o === 'string' ? { value: o, label: o } : o;
          return (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          );
        })}
      </select>
    </Around>
  );
}

export function Check({ label, hint, ...rest }: { label: ReactNode; hint?: ReactNode } & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId();
  return (
    <div className="check">
      <input type="checkbox" id={id} aria-describedby={hint ? `${id}-hint` : undefined} {...rest} />
      <label htmlFor={id}>{label}</label>
      {hint && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** An error: the API's message with the ID of the request. */
export function Problem({ error }: { error: unknown }) {
  if (!error) return null;
  return (
    <div role="alert" className="note bad">
      <p>{error instanceof AwayError ? words.shell.away : wordsOf(error)}</p>
      {error instanceof ApiError && error.requestId && <p className="hint mono">{w.requestId(error.requestId)}</p>}
    </div>
  );
}

export function Loading() {
  return (
    <p className="loading" role="status">
      {words.shell.loading}
    </p>
  );
}

/** The heading of a page, with its actions. */
export function PageHead({ title, lead, children }: { title: ReactNode; lead?: ReactNode; children?: ReactNode }) {
  return (
    <div className="pagehead">
      <div>
        <h1>{title}</h1>
        {lead && <p className="lead">{lead}</p>}
      </div>
      {children && <div className="actions">{children}</div>}
    </div>
  );
}

export type Tone = 'neutral' | 'good' | 'bad' | 'warn' | 'busy';
export function Badge({ tone = 'neutral', children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>;
}

export function CopyButton({ text, label = w.copy }: { text: string; label?: string }) {
  const [outcome, setOutcome] = useState<'copied' | 'failed'>();
  const timer = useRef<number>(undefined);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return (
    <Button
      variant="quiet"
      onClick={async (e) => {
        const copied = await copyText(text, e.currentTarget);
        setOutcome(copied ? 'copied' : 'failed');
        window.clearTimeout(timer.current);
        timer.current = window.setTimeout(() => setOutcome(undefined), copied ? 2_000 : 10_000);
      }}
    >
      <span aria-live="polite">{outcome ? w[outcome] : label}</span>
    </Button>
  );
}

/** Text to copy: an ID, a secret, a command. */
export function Code({ text, block = false }: { text: string; block?: boolean }) {
  if (block)
    return (
      <div className="codeblock">
        <pre tabIndex={0}>
          <code>{text}</code>
        </pre>
        <CopyButton text={text} />
      </div>
    );
  return (
    <span className="code">
      <code>{text}</code>
      <CopyButton text={text} />
    </span>
  );
}

/** A modal dialog, by the browser's own element. Escape closes it, unless "stays" is set: then only its buttons do.
 * While it is open, the rest of the page is inert. When it closes, the focus returns to where it was. */
export function Dialog({ open, title, onClose, stays = false, className, children }: { open: boolean; title: ReactNode; onClose: () => void; stays?: boolean; className?: string; children: ReactNode }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    if (!dialog) return;
    if (open && !dialog.open) {
      dialog.showModal();
      focusFirst(dialog);
    }
    if (!open && dialog.open) dialog.close();
  }, [open]);
  return (
    <dialog
      ref={ref}
      className={className}
      aria-labelledby={id}
      onCancel={(e) => stays && e.preventDefault()}
      // Chromium closes a dialog at the second Escape even if the first one was prevented.
      onClose={() => (stays && open ? ref.current?.showModal() : onClose())}
    >
      {open && (
        <>
          <div className="dialoghead">
            <h2 id={id} tabIndex={-1}>
              {title}
            </h2>
            <Button variant="quiet" onClick={onClose} aria-label={w.close}>
              ✕
            </Button>
          </div>
          {children}
        </>
      )}
    </dialog>
  );
}

// Moves the focus to the first field, or else to the title. The browser would focus the Close button, and Enter would
// press it before anybody has read the dialog.
function focusFirst(dialog: HTMLDialogElement): void {
  const field = dialog.querySelector<HTMLElement>('input:enabled, select:enabled, textarea:enabled');
  (field ?? dialog.querySelector<HTMLElement>('h2'))?.focus();
}

/** Keeps Enter in a one-line field from submitting a form that costs money. Only the button submits it. */
export function keepEnter(event: KeyboardEvent): void {
  if (event.key !== 'Enter' || !(event.target instanceof HTMLInputElement) || event.target.type === 'file') return;
  event.preventDefault();
}

export function Empty({ title, children }: { title: ReactNode; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="emptytitle">{title}</p>
      {children}
    </div>
  );
}

/** A list of names with their values. */
export function Facts({ rows }: { rows: readonly (readonly [ReactNode, ReactNode] | null | undefined | false)[] }) {
  return (
    <dl className="facts">
      {rows.map((row, i) =>
        row ? (
          <div key={i}>
            <dt>{row[0]}</dt>
            <dd>{row[1]}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}

/** The heading of a column of numbers, aligned to the right like the numbers. */
export function Right({ children, className = '' }: { children: ReactNode; className?: string }) {
  return <span className={`right ${className}`}>{children}</span>;
}

/** A table. On a narrow page it scrolls sideways, or with "cards" shows each row as a card. */
export function Table({ label, head, cards = false, children }: { label: string; head: readonly ReactNode[]; cards?: boolean; children: ReactNode }) {
  return (
    <div className={cards ? 'scroll cards' : 'scroll'} role="group" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((h, i) => (
              <th key={i} scope="col">
                {h}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export { Ago, Amount, Time, capitalised, formatAmount, formatDuration, formatTime, useNow, zoneName } from './format';
