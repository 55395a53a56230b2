// Getting started, shown until the account has a task: a key, a first call, a first result.
import { Link } from '@tanstack/react-router';
import { mayUse, useSession } from '../../session';
import { firstCall } from '../../task/snippets';
import { Code } from '../../ui';
import { words } from '../../words';
import type { ListedModel } from './catalog';
import css from './playground.module.css';

const w = words.playground.first;

export function FirstSteps({ models }: { models: ListedModel[] }) {
  const session = useSession();
  const submit = (models.find((m) => m.type === 'image') ?? models.find((m) => m.submit))?.submit;
  return (
    <section className={`card stack ${css.firststeps}`} aria-labelledby="first-steps">
      <h2 id="first-steps">{w.title}</h2>
      <ol>
        <li>
          {mayUse(session, 'manage') ? <Link to="/keys">{w.key}</Link> : <strong>{w.key}</strong>}
          <p className="hint">{w.keyHint}</p>
        </li>
        <li>
          <strong>{w.call}</strong>
          <p className="hint">{w.callHint}</p>
          {submit && <Code block text={firstCall({ base: window.location.origin, endpoint: submit.endpoint, body: submit.example })} />}
        </li>
        <li>
          <strong>{w.result}</strong>
          <p className="hint">
            <span>{w.resultHint}</span> <Link to="/tasks">{words.shell.tasks}</Link>
          </p>
        </li>
      </ol>
    </section>
  );
}
