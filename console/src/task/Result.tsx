// The result of a task, by its type.
import type { Item, Task } from '../api/types';
import { formatTime } from '../ui';
import { words } from '../words';
import { Art } from './Art';
import { Download } from './Download';
import { Foreign } from './Foreign';
import { useLink } from './links';
import { Pictures } from './Pictures';
import { Songs } from './Songs';
import { UseAsInput } from './UseAsInput';
import css from './task.module.css';

const w = words.task;

export function Result({ task }: { task: Task }) {
  const { videos, images, descriptions } = task.result ?? {};
  const gone = (videos ?? images ?? task.result?.audios ?? []).find((item) => item.url.length === 0);
  return (
    <div className="stack">
      {gone && <p className="note">{w.gone(formatTime(gone.expires_at))}</p>}
      {videos?.map((item, i) => <Video key={i} task={task} item={item} />)}
      {images && (task.type === 'art' ? <Art task={task} items={images} /> : <Pictures task={task} items={images} />)}
      {task.type === 'music' && <Songs task={task} />}
      {descriptions && (
        <ol className={css.descriptions}>
          {descriptions.map((text, i) => (
            <li key={i}>
              <Foreign text={text} />
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

function Video({ task, item }: { task: Task; item: Item }) {
  const url = item.url[0];
  return url ? <Player task={task} item={item} url={url} /> : null;
}

function Player({ task, item, url }: { task: Task; item: Item; url: string }) {
  const { src, onError, broken } = useLink(task.id, url, item.expires_at);
  return (
    <figure className={css.media}>
      {broken ? (
        <p className="note warn">{w.broken}</p>
      ) : (
        // The time fragment makes the browser show a frame before the video is played.
        <video controls playsInline preload="metadata" src={`${src}#t=0.1`} onError={onError} aria-label={w.video} style={item.width && item.height ? { aspectRatio: `${item.width} / ${item.height}` } : undefined} />
      )}
      <figcaption>
        <Download item={item} url={src} />
        <UseAsInput task={task} item={item} />
      </figcaption>
    </figure>
  );
}
