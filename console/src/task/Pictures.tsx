// The images of a task, each of which opens large in a dialog.
import { useEffect, useState, type ReactNode } from 'react';
import type { Item, Task } from '../api/types';
import { Button, Dialog } from '../ui';
import { words } from '../words';
import { Download } from './Download';
import { useLink } from './links';
import { UseAsInput } from './UseAsInput';
import css from './task.module.css';

const w = words.task;

export function Pictures({ task, items }: { task: Task; items: Item[] }) {
  const shown = items.filter((item) => item.url.length > 0);
  const [large, setLarge] = useState<number | null>(null);
  return (
    <>
      <div className={`${css.pictures} ${shown.length === 1 ? css.single : ''}`}>
        {shown.map((item, i) => (
          <figure key={i} className={css.media}>
            <Thumb task={task} item={item} label={shown.length === 1 ? w.openPicture : w.openPictureOf(i + 1, shown.length)} onOpen={() => setLarge(i)} />
            <figcaption>
              <Download item={item} url={item.url[0]!} />
              <UseAsInput task={task} item={item} />
            </figcaption>
          </figure>
        ))}
      </div>
      <Lightbox task={task} items={shown} at={large} onMove={setLarge} />
    </>
  );
}

/** An image as a button. */
export function Thumb({ task, item, label, onOpen }: { task: Task; item: Item; label: string; onOpen: () => void }) {
  return (
    <button type="button" className={css.thumb} aria-label={label} onClick={onOpen}>
      <Picture task={task} item={item} alt="" />
    </button>
  );
}

export function Picture({ task, item, alt, fallback }: { task: Task; item: Item; alt: string; fallback?: ReactNode }) {
  const { src, onError, broken } = useLink(task.id, item.url[0] ?? '', item.expires_at);
  if (broken) return <>{fallback ?? <span className="note warn">{w.broken}</span>}</>;
  return <img src={src} alt={alt} width={item.width} height={item.height} onError={onError} />;
}

/** One of several images, as large as the window allows. The arrow keys go to the next and previous image. */
export function Lightbox({ task, items, at, onMove }: { task: Task; items: Item[]; at: number | null; onMove: (at: number | null) => void }) {
  const item = at === null ? undefined : items[at];
  const step = (by: number) => at !== null && onMove((at + by + items.length) % items.length);
  return (
    <Dialog open={item !== undefined} title={at !== null && items.length > 1 ? w.pictureOf(at + 1, items.length) : w.picture} className={css.lightbox} onClose={() => onMove(null)}>
      {item && (
        <div className="stack">
          <Arrows step={step} />
          <Picture key={at} task={task} item={item} alt={w.pictureBy(task.model)} />
          <div className="row">
            {items.length > 1 && (
              <>
                <Button onClick={() => step(-1)}>{w.previous}</Button>
                <Button onClick={() => step(1)}>{w.next}</Button>
              </>
            )}
            <Download item={item} url={item.url[0]!} />
            <UseAsInput task={task} item={item} />
          </div>
        </div>
      )}
    </Dialog>
  );
}

// Handles the arrow keys wherever the focus is in the dialog.
function Arrows({ step }: { step: (by: number) => void }) {
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if (e.key === 'ArrowRight') step(1);
      if (e.key === 'ArrowLeft') step(-1);
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  });
  return null;
}
