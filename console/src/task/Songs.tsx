// The result of a music task: songs, the tracks of a song, or a voice.
import { Link } from '@tanstack/react-router';
import type { Result, Task } from '../api/types';
import { mayUse, useSession } from '../session';
import { Code } from '../ui';
import { words } from '../words';
import { Download, formatLength } from './Download';
import { Foreign } from './Foreign';
import { lasting, useLink } from './links';
import { Sound } from './Sound';
import { UseAsInput } from './UseAsInput';
import css from './task.module.css';

const w = words.task.music;

type Clip = NonNullable<Result['music']>[number];
type Song = Extract<Clip, { lyrics: unknown }>;

export function Songs({ task }: { task: Task }) {
  const audios = task.result?.audios ?? [];
  const until = audios[0]?.expires_at ?? 0;
  return (
    <div className="stack">
      {(task.result?.music ?? []).map((clip, i) => {
        if ('voice_id' in clip) return <Voice key={i} id={clip.voice_id} />;
        if ('file_url' in clip) {
          return (
            <div key={i} className={css.clip}>
              <h2>{w.stems}</h2>
              <p className="soft">{w.stemsHint}</p>
              {clip.file_url && <Download url={lasting(clip.file_url, until)} item={audios[i]} label={w.downloadStems} />}
            </div>
          );
        }
        return <SongCard key={i} task={task} song={clip} number={i + 1} until={until} />;
      })}
    </div>
  );
}

function Voice({ id }: { id: string }) {
  return (
    <div className={css.clip}>
      <h2>{w.voice}</h2>
      <p className="soft">{w.voiceHint}</p>
      <Code text={id} />
      <p>
        <Link to="/playground" search={{ model: 'music-a' }}>
          {w.useVoice}
        </Link>
      </p>
    </div>
  );
}

function SongCard({ task, song, number, until }: { task: Task; song: Song; number: number; until: number }) {
  const failed = 'status' in song && song.status === 'failed';
  const title = song.title || w.untitled(number);
  const item = task.result?.audios?.[number - 1];
  const bytes = item?.size_bytes;
  const link = (url: string | null | undefined) => (url ? lasting(url, until) : null);
  const wav = 'wav_url' in song ? link(song.wav_url) : null;
  const film = 'video_url' in song ? link(song.video_url) : null;
  return (
    <article className={`${css.clip} ${css.song}`}>
      <Cover taskId={task.id} url={song.image_url} until={until} />
      <div className={`stack ${css.songbody}`}>
        <div>
          <h2 className="foreign" dir="auto">{title}</h2>
          <p className={`soft ${css.songtags}`}>
            {song.duration_seconds && <span>{formatLength(Number(song.duration_seconds))}</span>}
            {'tags' in song && song.tags && <span className="foreign" dir="auto"> · {song.tags.slice(0, 300)}</span>}
          </p>
        </div>
        {failed ? <p className="note warn">{w.songFailed}</p> : song.audio_url && <Sound taskId={task.id} url={song.audio_url} until={until} title={title} bytes={bytes} />}
        {song.lyrics && (
          <details>
            <summary>{w.lyrics}</summary>
            <div className={css.lyrics} role="region" aria-label={w.lyricsOf(title)} tabIndex={0}>
              <Foreign text={song.lyrics} limit={3000} />
            </div>
          </details>
        )}
        {!failed && song.audio_url && (
          <p className="row">
            <Download url={link(song.audio_url)!} label={w.downloadSong} />
            {wav && <Download url={wav} label={w.downloadWav} />}
            {film && <Download url={film} label={w.film} />}
            {item && <UseAsInput task={task} item={item} />}
          </p>
        )}
        {!failed && <Operations task={task} song={song} number={number} title={title} />}
      </div>
    </article>
  );
}

function Cover({ taskId, url, until }: { taskId: string; url: string | null; until: number }) {
  return url ? <CoverPicture taskId={taskId} url={url} until={until} /> : <div className={`${css.cover} ${css.none}`} aria-hidden="true">♪</div>;
}

export function CoverPicture({ taskId, url, until }: { taskId: string; url: string; until: number }) {
  const { src, onError, broken } = useLink(taskId, url, until);
  if (broken) return <div className={`${css.cover} ${css.none}`} aria-hidden="true">♪</div>;
  return <img className={css.cover} src={src} alt={w.cover} onError={onError} />;
}

const operations = {
  a: ['remaster', 'sample', 'replaceMusic', 'stemsAll'],
  b: ['replaceMusicB', 'stemsMusicB'],
} as const;

/** Links to what can be created from a song. The playground asks for the rest of the request. */
function Operations({ task, song, number, title }: { task: Task; song: Song; number: number; title: string }) {
  const session = useSession();
  if (!mayUse(session, 'generate') || !mayUse(session, 'read')) return null;
  return (
    <div className="row" role="group" aria-label={w.operationsOf(title)}>
      <span className="soft">{w.makeOfIt}</span>
      {operations['clip_id' in song ? 'b' : 'a'].map((name) => (
        <Link key={name} to="/playground" search={{ endpoint: `/v1/music/generations/${name}`, source: task.id, ...(number > 1 ? { clip: String(number) } : {}) }}>
          {w.operation[name]}
        </Link>
      ))}
    </div>
  );
}
