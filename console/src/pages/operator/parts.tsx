// Parts that several pages for operators use.
import { Link } from '@tanstack/react-router';
import { Fragment, useEffect, useRef, useState, type ReactElement, type ReactNode } from 'react';
import type { Stuck } from '../../api/admin';
import { formatDuration, formatTime, useNow, type Tone } from '../../ui';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';
import { runbookOf } from './runbook';
import css from './operator.module.css';

const w = operatorWords;

function At({ unix, children }: { unix: number; children: ReactNode }) {
  return (
    <time dateTime={new Date(unix * 1000).toISOString()} title={formatTime(unix)}>
      {children}
    </time>
  );
}

/** The time left until a moment. */
export function Soon({ unix }: { unix: number | null }) {
  const now = useNow();
  if (unix === null) return <span>{words.ui.none}</span>;
  return <At unix={unix}>{unix > now ? w.soon(formatDuration(unix - now)) : w.now}</At>;
}

/** The time since a moment. */
export function Lasting({ unix }: { unix: number | null }) {
  const now = useNow(5_000);
  if (unix === null) return <span>{words.ui.none}</span>;
  return <At unix={unix}>{formatDuration(now - unix)}</At>;
}

/** A sentence of the API, with its UTC times in the form and zone of the browser. */
export function readable(sentence: string): string {
  return sentence.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (t) => formatTime(Date.parse(t) / 1000));
}

/** The reason why a task is stuck, in words, or undefined for an unknown reason. If an operator has drained the task's
 * channels, the sentence says so and does not blame the vendor. */
export function whyOf({ reason, drained }: Stuck): string | undefined {
  return drained?.length ? w.drained(drained) : w.park[reason];
}

/** A code of several words. The browser may break the line after each word. */
function Breakable({ code }: { code: string }) {
  return code.split(/(?<=_)/).map((word, i) => (
    <Fragment key={i}>
      {word}
      <wbr />
    </Fragment>
  ));
}

/** The reason why a task is stuck: in words, and as a link to its page of the runbook. */
export function Why({ stuck }: { stuck: Stuck }) {
  const known = whyOf(stuck);
  return (
    <>
      {known && <span className="strong">{known} </span>}
      <Elsewhere className={`mono ${css.code2}`} url={runbookOf(stuck.reason)}>
        {w.runbook} <Breakable code={stuck.reason} />
      </Elsewhere>
    </>
  );
}

export function AccountLink({ id, name }: { id: string; name: string }) {
  return (
    <Link to="/operator/accounts/$id" params={{ id }} className={`foreign ${css.accountname}`} title={name}>
      {name.slice(0, 80)}
    </Link>
  );
}

export function TaskLink({ id }: { id: string }) {
  return (
    <Link to="/operator/tasks/$id" params={{ id }} className="mono">
      {id}
    </Link>
  );
}

/** A sentence of the API, with links to the tasks that it names. */
export function TasksLinked({ text }: { text: string }) {
  return text.split(/(task_[0-9A-HJKMNP-TV-Z]{26})/).map((part, i) => (i % 2 === 1 ? <TaskLink key={i} id={part} /> : <span key={i}>{part}</span>));
}

/** A link to a page outside of the console: in Temporal's web interface or in the runbook. It opens a new tab. */
export function Elsewhere({ url, children, className }: { url: string; children: ReactNode; className?: string }) {
  return (
    <a href={url} className={className} target="_blank" rel="noreferrer">
      {children}
      <span className="sr"> {w.newTab}</span>
    </a>
  );
}

/** A line that reports what a command did. It takes the focus, because the button that had the focus may be gone. */
export function useSaid(): [said: ReactElement, say: (text: string, tone?: Tone) => void] {
  const [{ text, tone }, setLine] = useState<{ text: string; tone: Tone }>({ text: '', tone: 'good' });
  const [times, setTimes] = useState(0);
  const line = useRef<HTMLParagraphElement>(null);
  // An effect runs after the dialog has closed and has given the focus back.
  useEffect(() => {
    if (times > 0) line.current?.focus();
  }, [times]);
  const said = (
    <p role="status" tabIndex={-1} ref={line} className={text ? `note ${tone}` : 'sr'}>
      {text}
    </p>
  );
  return [said, (next, as = 'good') => (setLine({ text: next, tone: as }), setTimes((n) => n + 1))];
}
