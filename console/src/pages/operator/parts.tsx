// What the operators' pages share.
import { Link } from '@tanstack/react-router';
import { Fragment, useEffect, useRef, useState, type ReactElement, type ReactNode } from 'react';
import type { Stuck } from '../../api/admin';
import { formatDuration, formatTime, useNow, type Tone } from '../../ui';
import { words } from '../../words';
import { runbookOf } from './runbook';
import css from './operator.module.css';

const w = words.operator;

function At({ unix, children }: { unix: number; children: ReactNode }) {
  return (
    <time dateTime={new Date(unix * 1000).toISOString()} title={formatTime(unix)}>
      {children}
    </time>
  );
}

/** A moment to come. */
export function Soon({ unix }: { unix: number | null }) {
  const now = useNow();
  if (unix === null) return <span>{words.ui.none}</span>;
  return <At unix={unix}>{unix > now ? w.soon(formatDuration(unix - now)) : w.now}</At>;
}

/** How long something has lasted. */
export function Lasting({ unix }: { unix: number | null }) {
  const now = useNow(5_000);
  if (unix === null) return <span>{words.ui.none}</span>;
  return <At unix={unix}>{formatDuration(now - unix)}</At>;
}

/** A sentence of the server's with its times as people here read them. */
export function readable(sentence: string): string {
  return sentence.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (t) => formatTime(Date.parse(t) / 1000));
}

/** Why a task is stuck, in words, if there are any. A drained channel is no fault of the vendor's. */
export function whyOf({ reason, drained }: Stuck): string | undefined {
  return drained?.length ? w.drained(drained) : w.park[reason];
}

/** A code of several words, which may go on in another line after each. */
function Breakable({ code }: { code: string }) {
  return code.split(/(?<=_)/).map((word, i) => (
    <Fragment key={i}>
      {word}
      <wbr />
    </Fragment>
  ));
}

/** Why a task is stuck: in words, and by the name that the runbook has, with a link to its page there. */
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

/** A sentence of the server's with links to the tasks that it names. */
export function TasksLinked({ text }: { text: string }) {
  return text.split(/(task_[0-9A-HJKMNP-TV-Z]{26})/).map((part, i) => (i % 2 === 1 ? <TaskLink key={i} id={part} /> : <span key={i}>{part}</span>));
}

/** A link to a page that is not of the console: of Temporal's web interface, or of the runbook. */
export function Elsewhere({ url, children, className }: { url: string; children: ReactNode; className?: string }) {
  return (
    <a href={url} className={className} target="_blank" rel="noreferrer">
      {children}
      <span className="sr"> {w.newTab}</span>
    </a>
  );
}

/** Says what was done, and takes the focus: what had it may be gone with what was done. */
export function useSaid(): [said: ReactElement, say: (text: string, tone?: Tone) => void] {
  const [{ text, tone }, setLine] = useState<{ text: string; tone: Tone }>({ text: '', tone: 'good' });
  const [times, setTimes] = useState(0);
  const line = useRef<HTMLParagraphElement>(null);
  // After the dialog, which gives the focus back when it closes.
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
