// A task as a small image: the first frame of its video, its image, or the cover of its song.
import type { Item, Task } from '../api/types';
import { words } from '../words';
import { useLink } from './links';
import { filesOf, isOpen } from './useTask';
import css from './task.module.css';

const signs: Record<Task['type'], string> = { video: '▶', image: '▦', music: '♪', art: '✦' };

/** Shows one file of the task, counted from 1, or the first file that exists. If there is no image, it shows a symbol of
 * the type, and with it the progress or the reason of a failure unless "small" is set. */
export function Poster({ task, file = 0, small = false }: { task: Task; file?: number; small?: boolean }) {
  const item = file > 0 ? filesOf(task)[file - 1] : filesOf(task).find((f) => f.url.length > 0);
  const url = item && (task.type === 'music' ? item.thumbnail_url : item.url[0]);
  if (!item || !url) return <Sign task={task} small={small} />;
  return task.type === 'video' ? <Frame task={task} item={item} url={url} small={small} /> : <Still task={task} item={item} url={url} small={small} />;
}

function Sign({ task, small }: { task: Task; small: boolean }) {
  const code = task.error?.code;
  return (
    <span className={css.sign}>
      <span aria-hidden="true">{signs[task.type]}</span>
      {!small && isOpen(task) && <span className={css.signtext}>{words.tasks.progress(task.progress)}</span>}
      {!small && code && <span className={css.signtext}>{words.task.failure[code]?.title ?? code}</span>}
    </span>
  );
}

interface Shown {
  task: Task;
  item: Item;
  url: string;
  small: boolean;
}

function Still({ task, item, url, small }: Shown) {
  const { src, onError, broken } = useLink(task.id, url, item.expires_at);
  return broken ? <Sign task={task} small={small} /> : <img src={src} alt="" loading="lazy" onError={onError} />;
}

// The video plays while the pointer is over it, unless the person prefers reduced motion.
function Frame({ task, item, url, small }: Shown) {
  const { src, onError, broken } = useLink(task.id, url, item.expires_at);
  if (broken) return <Sign task={task} small={small} />;
  return (
    <video
      src={`${src}#t=0.1`}
      preload="metadata"
      muted
      loop
      playsInline
      tabIndex={-1}
      aria-hidden="true"
      onError={onError}
      onPointerEnter={(e) => {
        if (!window.matchMedia('(prefers-reduced-motion: reduce)').matches) void e.currentTarget.play().catch(() => {});
      }}
      onPointerLeave={(e) => e.currentTarget.pause()}
    />
  );
}
