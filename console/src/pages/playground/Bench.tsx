// The playground for one model: its form, and the results beside it.
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useMemo, useRef, useState } from 'react';
import { ApiError, wordsOf } from '../../api/client';
import { draft, forgetSpeech, keepDraft, speechesOf, type Request } from '../../requests';
import { mayUse, useSession } from '../../session';
import { addressOf } from '../../task/files';
import { Snippets } from '../../task/Snippets';
import { TaskView } from '../../task/TaskView';
import { Button, Empty, Problem, Select, keepEnter, usePageTitle } from '../../ui';
import { words } from '../../words';
import { adviceOf } from './advice';
import type { Target } from './catalog';
import { Earlier, useEarlier } from './Earlier';
import { Form } from './Form';
import { Made, useOutcome } from './Made';
import { ModelHead } from './ModelHead';
import { Price, useQuote, useSettled } from './Price';
import type { InputFile } from './input';
import { carriedOver, initialValues, withExamples, withFile, type Values } from './schema';
import { withoutTask, withTask } from './shown';
import { Speech } from './Speech';
import { useRun } from './useRun';
import { faultsOf, titleOf, withTitle, type Fault } from './validate';
import { bodyOf, setAt, type Path } from './walk';
import css from './playground.module.css';

const w = words.playground;

interface Props {
  /** Identifies the form. Another subject starts a new form. */
  subject: string;
  target: Target;
  again?: Request | undefined;
  /** The fields that name the task to work on. */
  source?: Values | undefined;
  /** The file to use in the request. */
  input?: InputFile | undefined;
  sourceTask?: string | undefined;
  /** The tasks whose results are shown. */
  tasks: string[];
  note?: string;
}

// The initial values of the form: the request to vary, or the draft for this model, or what a draft for another model
// has in common with it. If the request to vary is not known, drafts are not used instead.
function valuesAtFirst({ target, again, source, input, note }: Props): Values {
  const typed = note ? undefined : draft();
  const known = again ?? (typed?.endpoint === target.endpoint && typed.model === target.model && !source ? typed : undefined);
  const start = known?.body ?? { ...initialValues(target.schema), ...(typed && !source && !input ? carriedOver(target.schema, typed.body) : {}) };
  const values = { ...start, ...source };
  return input ? withFile(target.schema, values, input.media, addressOf(input)) : values;
}

/** The fault in a refused request. Without a param, the field is the one that starts the message. */
function faultOfError(error: unknown): Fault | undefined {
  if (!(error instanceof ApiError) || error.status !== 400) return undefined;
  const path = error.param ?? /^[a-z_]+(\[\d+\])?(\.[a-z_]+(\[\d+\])?)*/.exec(error.message)?.[0];
  return path ? { path, message: error.message, missing: false } : undefined;
}

/** Whether the top of a section is visible. */
function isInSight(section: HTMLElement | null): boolean {
  const top = section?.getBoundingClientRect().top ?? 0;
  return top >= 0 && top < window.innerHeight / 2;
}

export function Bench(props: Props) {
  const { subject, target, note, tasks } = props;
  const { endpoint, model, schema } = target;
  const session = useSession();
  const navigate = useNavigate({ from: '/playground' });
  const begun = () => ({ subject, again: !!props.again, values: valuesAtFirst(props), attempted: false });
  const [form, setForm] = useState(begun);
  // A new subject replaces the form but not the page around it, which keeps the focus. The same task may be varied more
  // than once.
  if (form.subject !== subject || (props.again && !form.again)) setForm(begun());
  else if (form.again && !props.again) setForm({ ...form, again: false });
  const { values, attempted } = form;
  const setAttempted = (next: boolean) => setForm((now) => ({ ...now, attempted: next }));
  const [speeches, setSpeeches] = useState(() => speechesOf(model));
  const place = useRef<HTMLDivElement>(null);
  const outcome = useOutcome(tasks);
  const earlier = useEarlier(model);
  usePageTitle(outcome ? w.titles[outcome](model) : w.title);

  const body = useMemo(() => bodyOf(schema, model, values), [schema, model, values]);
  const faults = useMemo(() => faultsOf(schema, body), [schema, body]);
  const missing = faults.some((f) => f.missing);
  const settled = useSettled(useMemo(() => ({ endpoint, model, schema, body }), [endpoint, model, schema, body]));
  const priced = useMemo(() => {
    const wrong = faultsOf(settled.schema, settled.body);
    return wrong.every((f) => f.missing) ? withExamples(settled.schema, settled.body, wrong.map((f) => f.path)) : undefined;
  }, [settled]);
  const quote = useQuote(settled.endpoint, priced);
  const named = endpoint === target.operations[0]?.endpoint ? undefined : endpoint;
  const show = (task: string) => void navigate({ search: (now) => ({ ...now, model, task: withTask(now.task ?? now.from, task) }), resetScroll: false });
  const hide = (task: string) => void navigate({ search: (now) => ({ ...now, model, from: undefined, endpoint: named, task: withoutTask(now.task ?? now.from, task) }), resetScroll: false });
  const sending = useRun((outcome) => {
    setAttempted(false);
    if ('speech' in outcome) setSpeeches((now) => [outcome.speech, ...now]);
    else show(outcome.task);
    isNew.current = true;
  });
  const result = useRef<HTMLElement>(null);
  const isNew = useRef(false);
  const newestTask = tasks[0];
  const newestSpeech = speeches[0];
  useEffect(() => {
    // On a phone the result is below the form, so the page scrolls to it.
    if (isNew.current && !isInSight(result.current)) result.current?.scrollIntoView({ block: 'start' });
    isNew.current = false;
  }, [newestTask, newestSpeech]);

  useEffect(() => keepDraft({ endpoint: settled.endpoint, model: settled.model, body: settled.body }), [settled]);

  const refused = faultOfError(sending.error) ?? (missing ? undefined : faultOfError(quote.error));
  const told = refused && withTitle(schema, refused);
  const shown = useMemo(() => {
    const local = faults.filter((f) => attempted || !f.missing);
    return told && !local.some((f) => f.path === told.path) ? [...local, told] : local;
    // Each render makes a new object, so its contents are compared.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [faults, attempted, told?.path, told?.message]);

  useEffect(() => {
    sending.reset();
    setSpeeches(speechesOf(model));
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [subject]);
  const submit = (request: Request) => {
    if (sending.pending) return; // the button is not disabled, because a disabled button loses the focus
    setAttempted(true);
    if (faultsOf(schema, request.body).length === 0) sending.run(request);
  };
  useEffect(() => {
    if (!attempted || shown.length === 0) return;
    const wrong = place.current?.querySelector<HTMLElement>('[data-wrong]');
    wrong?.closest('details')?.setAttribute('open', '');
    (wrong?.matches('input, textarea, select') ? wrong : wrong?.querySelector<HTMLElement>('input, textarea, select'))?.focus();
    // The focus moves to the field after an attempt to run, not while the person types.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [attempted, sending.error]);

  const change = (path: Path, value: unknown) => {
    setForm((now) => ({ ...now, values: setAt(now.values, path, value) as Values }));
    if (sending.error) sending.reset();
  };
  // The request of a task of this model fills in this form. That of another model opens its own form.
  const vary = (task: string, made: Request) => {
    if (made.endpoint !== endpoint || made.model !== model) void navigate({ search: { from: task } });
    else {
      setForm((now) => ({ ...now, values: made.body, attempted: false }));
      place.current?.querySelector<HTMLElement>('[data-main]')?.focus();
    }
  };
  const mayRun = mayUse(session, 'generate');
  const state = useMemo(() => ({ faults: shown, endpoint, model }), [shown, endpoint, model]);

  return (
    <div className={css.bench}>
      <section className="stack" aria-label={w.request}>
        <ModelHead target={target} />
        {note && <p className="note">{note}</p>}
        <div
          className="card"
          ref={place}
          onKeyDown={(e) => {
            keepEnter(e);
            if (e.key === 'Enter' && (e.ctrlKey || e.metaKey) && mayRun) submit({ endpoint, model, body });
          }}
        >
          {target.operations.length > 1 && (
            <Select
              label={w.operation}
              value={endpoint}
              options={target.operations.map((o) => ({ value: o.endpoint, label: o.summary }))}
              onChange={(e) => void navigate({ search: (now) => ({ type: now.type, tag: now.tag, source: now.source, input: now.input, file: now.file, model, endpoint: e.target.value === target.operations[0]?.endpoint ? undefined : e.target.value }) })}
            />
          )}
          <Form key={subject} schema={schema} values={values} onChange={change} onSubmit={() => mayRun && submit({ endpoint, model, body })} state={state}>
            <div className={css.run}>
              {attempted && shown.length > 0 && (
                <p className="fault" role="alert">
                  {w.mend([...new Set(shown.map((f) => titleOf(schema, f.path)))].join(', '))}
                </p>
              )}
              {sending.error && !faultOfError(sending.error) && <RunProblem error={sending.error} />}
              <Price quote={quote.data} example={missing} />
              <div className="row">
                {mayRun ? (
                  <Button type="submit" variant="main" aria-disabled={sending.pending} title={w.shortcut}>
                    {sending.repeating ? w.repeating : sending.pending ? w.running : w.run}
                  </Button>
                ) : (
                  <p className="note">{w.readOnly}</p>
                )}
                <Snippets endpoint={endpoint} body={body} />
              </div>
            </div>
          </Form>
        </div>
      </section>
      <section className={`stack ${css.result}`} aria-label={w.result} ref={result}>
        <Earlier model={model} shown={tasks} onShow={show} />
        {(tasks.length > 0 || speeches.length > 0) && (
          <div className={tasks.length + speeches.length > 1 ? `${css.results} ${css.many}` : css.results}>
            {speeches.map((speech) => (
              <Speech
                key={speech.at}
                speech={speech}
                onClose={() => {
                  forgetSpeech(speech.at);
                  setSpeeches((now) => now.filter((s) => s !== speech));
                }}
              />
            ))}
            {tasks.map((task) => (
              <Made key={task} id={task} busy={sending.pending} onAgain={mayRun ? sending.run : undefined} onVary={mayRun ? vary : undefined} onClose={hide} />
            ))}
          </div>
        )}
        {tasks.length === 0 && speeches.length === 0 && props.sourceTask && (
          <div className="card stack">
            <h2>{w.source.title}</h2>
            <TaskView id={props.sourceTask} />
          </div>
        )}
        {tasks.length === 0 && speeches.length === 0 && !props.sourceTask && <Empty title={earlier?.length ? w.nextResult : w.nothingYet}>{!earlier?.length && <p>{w.nothingYetLead}</p>}</Empty>}
      </section>
    </div>
  );
}

/** Why a request was refused, and what to do about it. */
function RunProblem({ error }: { error: unknown }) {
  const advice = adviceOf(error);
  if (!advice) return <Problem error={error} />;
  return (
    <div role="alert" className="note bad">
      <p>
        <strong>{advice[0]}</strong> {advice[1]}
      </p>
      <p className="hint foreign">{wordsOf(error)}</p>
    </div>
  );
}
