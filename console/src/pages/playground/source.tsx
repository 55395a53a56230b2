// Fields that choose the task to work on, and its song.
import { useQuery } from '@tanstack/react-query';
import { useContext } from 'react';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { Task, TaskList } from '../../api/types';
import { taskQuery } from '../../task/useTask';
import { formatTime } from '../../ui';
import { words } from '../../words';
import { typeOfEndpoint } from './catalog';
import type { Schema, Values } from './schema';
import { FormStateContext, useInput } from './field';
import type { InputProps } from './widgets';

const w = words.playground.source;

interface Song {
  clip_id?: string;
  audio_url?: string;
  title?: string;
  duration_seconds?: string;
}
const songsOf = (task: Task | undefined): Song[] => (((task?.result as { music?: Song[] } | undefined)?.music ?? []) as Song[]);
const songWords = (song: Song, i: number) => w.song(i + 1, (song.title ?? '').slice(0, 60), song.duration_seconds ? Math.round(Number(song.duration_seconds)) : null);

/** The newest tasks that the form's operation can work on. */
function useSources() {
  const { endpoint, model } = useContext(FormStateContext);
  const query = { type: typeOfEndpoint(endpoint), model: model === 'art' ? undefined : model, limit: 100 };
  const tasks = useQuery({ queryKey: queryKeys.sources(query), queryFn: () => call<TaskList>('GET', '/v1/tasks', { query }) });
  // The modal call continues a task that waits for it. All other operations use completed tasks.
  const status = endpoint.endsWith('/modal') ? 'processing' : 'completed';
  return tasks.data?.data.filter((task) => task.status === status) ?? [];
}

function Choice({ id, value, onChange, options }: { id: string; value: InputProps['value']; onChange: InputProps['onChange']; options: { value: string; label: string }[] }) {
  const shown = String(value ?? '');
  return (
    <select {...useInput(id)} value={shown} onChange={(e) => onChange(e.target.value || undefined)}>
      <option value="">{options.length ? w.choose : w.nothing}</option>
      {shown !== '' && !options.some((o) => o.value === shown) && <option value={shown}>{shown}</option>}
      {options.map((o) => (
        <option key={o.value} value={o.value}>
          {o.label}
        </option>
      ))}
    </select>
  );
}

export function SourceTask({ id, value, onChange }: InputProps) {
  const options = useSources().map((task) => ({ value: task.id, label: w.task(songsOf(task)[0]?.title?.slice(0, 60) || task.reference || task.model, formatTime(task.created)) }));
  return <Choice id={id} value={value} onChange={onChange} options={options} />;
}

export function Clip({ id, value, onChange }: InputProps) {
  const options = useSources().flatMap((task) => songsOf(task).flatMap((song, i) => (song.clip_id ? [{ value: song.clip_id, label: w.task(songWords(song, i), formatTime(task.created)) }] : [])));
  return <Choice id={id} value={value} onChange={onChange} options={options} />;
}

/** Chooses a song of the task. Most tasks make two. */
export function ClipIndex({ id, schema, value, onChange }: InputProps) {
  const songs = Math.max(2, Number(value ?? 1));
  return (
    <select {...useInput(id)} value={String(value ?? schema.default)} onChange={(e) => onChange(Number(e.target.value))}>
      {Array.from({ length: songs }, (_, i) => (
        <option key={i} value={i + 1}>
          {w.number(i + 1)}
        </option>
      ))}
    </select>
  );
}

/** The fields by which a request names a task or a song of it; undefined until they are known. */
export function useSource(schema: Schema | undefined, task: string | undefined, clip: string | undefined): Values | undefined {
  const takes = (name: string) => !!schema?.properties && name in schema.properties;
  const bySong = takes('clip_id') || takes('audio_url');
  const made = useQuery({ ...taskQuery(task ?? ''), enabled: !!task && bySong });
  if (!task) return {};
  if (bySong && made.isPending) return undefined;
  const song = songsOf(made.data)[Number(clip ?? 1) - 1];
  const fields = { task_id: task, audio_index: clip && Number(clip), clip_id: song?.clip_id, audio_url: song?.audio_url };
  return Object.fromEntries(Object.entries(fields).filter(([name, value]) => takes(name) && value !== undefined));
}
