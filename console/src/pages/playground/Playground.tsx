// Trying the models: which one, and then what it is asked for and what it makes.
import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { requestOf } from '../../requests';
import { loadPart } from '../../shell/load';
import { taskQuery } from '../../task/useTask';
import '../../styles/playground.css';
import { Empty, Loading, PageHead, Problem, usePageTitle } from '../../ui';
import { words } from '../../words';
import { useTarget } from './catalog';
import { Chooser } from './Chooser';
import { useInputFile, type InputFile } from './input';
import { useSource } from './source';

const w = words.playground;

// The form library is as large as the rest of the console: it comes when a form is shown.
const Bench = lazy(() => loadPart(() => import('./Bench')).then(({ Bench }) => ({ default: Bench })));

export function Playground() {
  usePageTitle(w.title);
  const search = useSearch({ from: '/frame/playground' });
  const { input, pending, error } = useInputFile();
  if (error) return <Told error={error} />;
  if (pending) return <Loading />;
  if (!search.from && !search.model && !search.endpoint) return <Chooser input={input} />;
  return <Suspense fallback={<Loading />}>{search.from && !requestOf(search.from) ? <Elsewhere task={search.from} /> : <Chosen input={input} />}</Suspense>;
}

function Chosen({ input }: { input: InputFile | undefined }) {
  const search = useSearch({ from: '/frame/playground' });
  const again = search.from ? requestOf(search.from) : undefined;
  const { target, missing, error } = useTarget(again?.model ?? search.model, again?.endpoint ?? search.endpoint);
  const source = useSource(target?.schema, search.source, search.clip);
  if (error) return <Told error={error} />;
  if (missing) return <Told>{w.unknown}</Told>;
  if (!target || !source) return <Loading />;
  const subject = [target.model, target.endpoint, search.from, search.source, search.clip, search.input, search.file].join(' ');
  return <Bench subject={subject} target={target} again={search.task ? undefined : again} source={search.source ? source : undefined} input={input} sourceTask={search.source ?? search.input} task={search.task ?? search.from} />;
}

/** A task whose request this browser does not have: its model is known, and that is all. */
function Elsewhere({ task }: { task: string }) {
  const search = useSearch({ from: '/frame/playground' });
  const { data, error } = useQuery(taskQuery(task));
  const { target, missing } = useTarget(data?.model, undefined);
  if (error) return <Told error={error} />;
  if (missing) return <Told>{w.unknown}</Told>;
  if (!target) return <Loading />;
  return <Bench subject={task} target={target} note={w.elsewhere} task={search.task ?? task} />;
}

/** Instead of the page: why there is none. */
function Told({ error, children }: { error?: unknown; children?: string }) {
  return (
    <>
      <PageHead title={w.title} />
      {error ? <Problem error={error} /> : <Empty title={children} />}
      <p>
        <Link to="/playground">{w.allModels}</Link>
      </p>
    </>
  );
}
