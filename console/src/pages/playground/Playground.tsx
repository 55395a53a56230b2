// The playground: first the choice of a model, then its form and results.
import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import type { Request } from '../../requests';
import { loadPart } from '../../shell/load';
import { requestQuery } from '../../task/request';
import { taskQuery } from '../../task/useTask';
import { Empty, Loading, PageHead, Problem, usePageTitle } from '../../ui';
import { words } from '../../words';
import { useTarget } from './catalog';
import { Chooser } from './Chooser';
import { useInputFile, type InputFile } from './input';
import { shownTasks } from './shown';
import { useSource } from './source';

const w = words.playground;

// The form and its validator are loaded when a form is first shown.
const Bench = lazy(() => loadPart(() => import('./Bench')).then(({ Bench }) => ({ default: Bench })));

export function Playground() {
  const search = useSearch({ from: '/frame/playground' });
  const { input, pending, error } = useInputFile();
  if (error) return <Told error={error} />;
  if (pending) return <Loading />;
  if (!search.from && !search.model && !search.endpoint) return <Chooser input={input} />;
  return <Suspense fallback={<Loading />}>{search.from ? <Varied task={search.from} input={input} /> : <Chosen input={input} />}</Suspense>;
}

/** The form, filled in with the request of a task. */
function Varied({ task, input }: { task: string; input: InputFile | undefined }) {
  const { data, error } = useQuery(requestQuery(task));
  if (error) return <Told error={error} />;
  if (data === undefined) return <Loading />;
  return data === null ? <Erased task={task} /> : <Chosen input={input} again={data} />;
}

function Chosen({ input, again }: { input: InputFile | undefined; again?: Request }) {
  const search = useSearch({ from: '/frame/playground' });
  const { target, missing, error } = useTarget(again?.model ?? search.model, again ? again.endpoint || undefined : search.endpoint);
  const source = useSource(target?.schema, search.source, search.clip);
  if (error) return <Told error={error} />;
  if (missing) return <Told>{w.unknown}</Told>;
  if (!target || !source) return <Loading />;
  const subject = [target.model, target.endpoint, search.from, search.source, search.clip, search.input, search.file].join(' ');
  return <Bench subject={subject} target={target} again={search.task ? undefined : again} source={search.source ? source : undefined} input={input} sourceTask={search.source ?? search.input} tasks={shownTasks(search.task ?? search.from)} />;
}

/** The form for the model of a task whose request was erased. */
function Erased({ task }: { task: string }) {
  const search = useSearch({ from: '/frame/playground' });
  const { data, error } = useQuery(taskQuery(task));
  const { target, missing } = useTarget(data?.model, undefined);
  if (error) return <Told error={error} />;
  if (missing) return <Told>{w.unknown}</Told>;
  if (!target) return <Loading />;
  return <Bench subject={task} target={target} note={w.erased} tasks={shownTasks(search.task ?? task)} />;
}

/** The page when there is no form to show, with the reason. */
function Told({ error, children }: { error?: unknown; children?: string }) {
  usePageTitle(w.title);
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
