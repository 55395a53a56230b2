// A task as a small picture: the first frame of its video, its picture, the cover of its song.
import type { Item, Task } from '../api/types';
import { words } from '../words';
import { useLink } from './links';
import { filesOf, isOpen } from './useTask';

const signs: Record<Task['type'], string> = { video: '▶', image: '▦', music: '♪', art: '✦' };

export function Poster({ task }: { task: Task }) {
  const item = filesOf(task).find((f) => f.url.length > 0);
  const url = item && (task.type === 'music' ? item.thumbnail_url : item.url[0]);
  if (!item || !url) return <Sign task={task} />;
  return task.type === 'video' ? <Frame task={task} item={item} url={url} /> : <Still task={task} item={item} url={url} />;
}

function Sign({ task }: { task: Task }) {
  const code = task.error?.code;
  return (
    <span className="sign">
      <span aria-hidden="true">{signs[task.type]}</span>
      {isOpen(task) && <span className="signtext">{words.tasks.progress(task.progress)}</span>}
      {code && <span className="signtext">{words.task.failure[code]?.title ?? code}</span>}
    </span>
  );
}

function Still({ task, item, url }: { task: Task; item: Item; url: string }) {
  const { src, onError, broken } = useLink(task.id, url, item.expires_at);
  return broken ? <Sign task={task} /> : <img src={src} alt="" loading="lazy" onError={onError} />;
}

// The video plays while the pointer is on it, for those who did not ask for less motion.
function Frame({ task, item, url }: { task: Task; item: Item; url: string }) {
  const { src, onError, broken } = useLink(task.id, url, item.expires_at);
  if (broken) return <Sign task={task} />;
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
