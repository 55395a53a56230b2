// The list of models, filtered by type, tag and name.
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { Badge, Empty, Loading, PageHead, Problem, usePageTitle } from '../../ui';
import { TaskThumb } from '../../task/TaskThumb';
import { shortId } from '../../task/useTask';
import { words } from '../../words';
import { loadPart } from '../../shell/load';
import { types, useMadeAny, useModels, type ListedModel } from './catalog';
import type { InputFile } from './input';
import { ModelPrice } from './ModelHead';
import css from './playground.module.css';

const w = words.playground;

// Loaded only for accounts without tasks.
const FirstSteps = lazy(() => loadPart(() => import('./FirstSteps')).then(({ FirstSteps }) => ({ default: FirstSteps })));

/** Chooses a model, or one that takes the given file. */
export function Chooser({ input }: { input: InputFile | undefined }) {
  usePageTitle(w.title);
  const { type, tag } = useSearch({ from: '/frame/playground' });
  const navigate = useNavigate({ from: '/playground' });
  const { models: all, error } = useModels(input?.media);
  const made = useMadeAny();
  const [sought, setSought] = useState('');
  if (!all) return error ? <Problem error={error} /> : <Loading />;

  const models = input ? all.filter((m) => m.taking) : all;
  const ofType = models.filter((m) => !type || m.type === type);
  const tags = [...new Set(ofType.flatMap((m) => m.tags))];
  const found = ofType.filter((m) => (!tag || m.tags.includes(tag)) && `${m.id} ${m.submit?.schema.description ?? ''} ${m.tags.join(' ')}`.toLowerCase().includes(sought.trim().toLowerCase()));
  return (
    <>
      <PageHead title={w.title} lead={input ? w.input.choose[input.media] : w.lead} />
      {!input && made === false && (
        <Suspense fallback={null}>
          <FirstSteps models={all} />
        </Suspense>
      )}
      {input && (
        <div className={css.input}>
          <TaskThumb file={input} alt="" />
          <span>
            <span>{w.input.of(input.file)} </span>
            <Link to="/tasks/$id" params={{ id: input.task }} className="mono">
              {shortId(input.task)}
            </Link>
          </span>
          <Link to="/playground" search={{}} className="button">
            {w.input.without}
          </Link>
        </div>
      )}
      <div className={css.filters}>
        <div className="segments" role="radiogroup" aria-label={w.type}>
          {[undefined, ...types.filter((t) => models.some((m) => m.type === t))].map((t) => (
            <label key={t ?? ''} className="segment">
              <input type="radio" name="type" checked={type === t} onChange={() => void navigate({ search: (now) => ({ input: now.input, file: now.file, type: t }), replace: true })} />
              <span>{t ? w.types[t] : w.all}</span>
            </label>
          ))}
        </div>
        <select aria-label={w.tag} value={tag ?? ''} onChange={(e) => void navigate({ search: (now) => ({ ...now, tag: e.target.value || undefined }), replace: true })}>
          <option value="">{w.anyTag}</option>
          {tags.map((t) => (
            <option key={t}>{t}</option>
          ))}
        </select>
        <input type="search" aria-label={w.search} placeholder={w.search} value={sought} onChange={(e) => setSought(e.target.value)} />
      </div>
      <p className="sr" role="status">
        {w.found(found.length)}
      </p>
      {found.length === 0 ? (
        <Empty title={w.noModel}>{w.noModelLead}</Empty>
      ) : (
        <ul className={css.models}>
          {found.map((m) => (
            <li key={m.id}>
              <ModelCard model={m} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function ModelCard({ model }: { model: ListedModel }) {
  return (
    <Link to="/playground" search={(now) => ({ ...now, model: model.id, endpoint: model.taking && model.taking !== model.submit ? model.taking.endpoint : undefined })} className={`card ${css.model}`} data-type={model.type} preload={false}>
      <span className={css.modelname}>
        <h2>{model.id}</h2>
        {model.type && <Badge>{w.types[model.type]}</Badge>}
        {model.ends && <Badge tone="warn">{w.endsOn(model.ends)}</Badge>}
      </span>
      <p className="soft">{String(model.submit?.schema.description ?? '')}</p>
      <p className={css.tags}>{model.tags.join(' · ')}</p>
      <ModelPrice model={model} />
    </Link>
  );
}
