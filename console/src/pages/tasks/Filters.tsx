// The filters of the list of tasks.
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { ApiError, wordsOf } from '../../api/client';
import { useKeyNames } from '../../api/keyNames';
import { modelsQuery } from '../../api/models';
import { taskIdIn } from '../../task/files';
import { Button, Field, Select, Typed } from '../../ui';
import { words } from '../../words';
import css from './tasks.module.css';

const w = words.tasks;

const names = ['status', 'type', 'model', 'key', 'reference', 'source', 'webhook', 'created_after', 'created_before'] as const;
type Filter = (typeof names)[number];
export type Filtered = Partial<Record<Filter, string>>;

export function filtersOf(search: Filtered): Filtered {
  return Object.fromEntries(names.filter((n) => search[n] !== undefined).map((n) => [n, search[n]]));
}

const isDay = (text: string) => /^\d{4}-\d\d-\d\d$/.test(text);

/** The query for the API. Days are in the browser's time zone, and a range includes its first and last day. */
export function queryOf(search: Filtered): Filtered {
  const query = filtersOf(search);
  const midnight = (day: string, plus: number) => {
    const [y, m, d] = day.split('-').map(Number) as [number, number, number];
    return Math.floor(new Date(y, m - 1, d + plus).getTime() / 1000);
  };
  if (query.created_after && isDay(query.created_after)) query.created_after = String(midnight(query.created_after, 0) - 1);
  if (query.created_before && isDay(query.created_before)) query.created_before = String(midnight(query.created_before, 1));
  return query;
}

/** The filter that an error names. */
export function faultOf(error: unknown): Filter | undefined {
  return error instanceof ApiError ? names.find((n) => error.param === n) : undefined;
}

export function Filters({ search, error }: { search: Filtered; error: unknown }) {
  const navigate = useNavigate({ from: '/tasks' });
  const { data: models } = useQuery(modelsQuery);
  const set = (name: Filter, value: string) => void navigate({ search: (s) => ({ ...s, [name]: value || undefined, after: undefined }), replace: true });
  const fault = (name: Filter) => (faultOf(error) === name ? wordsOf(error) : null);
  const known = models?.data.map((m) => m.id) ?? [];
  const choices = search.model && !known.includes(search.model) ? [search.model, ...known] : known;
  const { names: keyNames, nameOf } = useKeyNames();
  const keys = [...new Map([...keyNames, ...(search.key ? [[search.key, nameOf(search.key)] as const] : [])])].map(([value, label]) => ({ value, label }));
  const any = { value: '', label: w.any };
  // A task ID opens its page. Any other text is a reference.
  const find = (text: string) => {
    const task = taskIdIn(text);
    if (task) void navigate({ to: '/tasks/$id', params: { id: task } });
    else set('reference', text);
  };
  return (
    <form className={css.filters} aria-label={w.filters} onSubmit={(e) => e.preventDefault()}>
      <Typed label={w.find} value={search.reference ?? ''} error={fault('reference')} onChange={find} />
      <Select label={w.state} error={fault('status')} value={search.status ?? ''} onChange={(e) => set('status', e.target.value)} options={[any, ...Object.entries(words.task.status).map(([value, label]) => ({ value, label }))]} />
      <Select label={w.type} error={fault('type')} value={search.type ?? ''} onChange={(e) => set('type', e.target.value)} options={[any, ...Object.entries(w.types).map(([value, label]) => ({ value, label }))]} />
      <Select label={w.model} error={fault('model')} value={search.model ?? ''} onChange={(e) => set('model', e.target.value)} options={[any, ...choices]} />
      <Select label={w.key} error={fault('key')} value={search.key ?? ''} onChange={(e) => set('key', e.target.value)} options={[any, ...keys]} />
      <Select label={words.task.page.callback} error={fault('webhook')} value={search.webhook ?? ''} onChange={(e) => set('webhook', e.target.value)} options={[any, ...Object.entries(words.task.page.callbackState).map(([value, label]) => ({ value, label }))]} />
      <Typed label={w.source} value={search.source ?? ''} error={fault('source')} onChange={(value) => set('source', value.trim())} />
      <Field label={w.from} error={fault('created_after')} type="date" value={dayOf(search.created_after)} onChange={(e) => set('created_after', e.target.value)} />
      <Field label={w.to} error={fault('created_before')} type="date" value={dayOf(search.created_before)} onChange={(e) => set('created_before', e.target.value)} />
      {Object.keys(filtersOf(search)).length > 0 && (
        <Button variant="quiet" onClick={() => void navigate({ search: (s) => ({ view: s.view }) })}>
          {w.reset}
        </Button>
      )}
    </form>
  );
}

// The day to show in a date field. The URL may hold a moment instead, as the API takes it; its day is that of the
// browser's time zone.
export function dayOf(text: string | undefined): string {
  if (!text || isDay(text)) return text ?? '';
  const moment = new Date(/^\d+$/.test(text) ? Number(text) * 1000 : text);
  if (Number.isNaN(moment.getTime())) return '';
  const two = (n: number) => String(n).padStart(2, '0');
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
}
