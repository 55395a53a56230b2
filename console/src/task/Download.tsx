// A link that downloads a file, with the properties of the file.
import { useState, type MouseEvent } from 'react';
import type { Item } from '../api/types';
import { words } from '../words';
import { readFile } from './readFile';
import css from './task.module.css';

const w = words.task;

export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(0)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

export function formatLength(seconds: number): string {
  const s = Math.floor(seconds); // as the browser's player counts
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

export function factsOf(item: Item): string {
  return [
    item.width && item.height ? `${item.width} × ${item.height}` : '',
    item.duration ? formatLength(item.duration) : '',
    item.mime_type?.split('/')[1]?.toUpperCase() ?? '',
    item.size_bytes ? formatBytes(item.size_bytes) : '',
  ]
    .filter(Boolean)
    .join(' · ');
}

const largest = 200e6; // bytes: the page holds the whole file in memory while it saves it

/** A link that saves the file. Browsers ignore the download attribute for files of another origin, so the page reads the
 * file and saves it. If the page may not read it, the file opens in a new tab. */
export function Download({ item, url, label = w.download }: { item?: Item | undefined; url: string; label?: string }) {
  const [busy, setBusy] = useState(false);
  const save = async (e: MouseEvent) => {
    if (busy || (item?.size_bytes ?? 0) > largest || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    setBusy(true);
    const file = await readFile(url).then((r) => r?.blob().then((blob) => ({ blob, name: nameOf(r, url) })) ?? null).catch(() => null);
    setBusy(false);
    if (!file) {
      window.open(url, '_blank', 'noopener,noreferrer');
      return;
    }
    const link = document.createElement('a');
    link.href = URL.createObjectURL(file.blob);
    link.download = file.name;
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };
  return (
    <span className={css.download}>
      <a href={url} download target="_blank" rel="noreferrer" aria-busy={busy} onClick={(e) => void save(e)}>
        {busy ? w.downloading : label}
      </a>
      {item && <span className="soft">{factsOf(item)}</span>}
    </span>
  );
}

function nameOf(response: Response, url: string): string {
  const said = /filename="([^"]+)"/.exec(response.headers.get('Content-Disposition') ?? '')?.[1];
  return said ?? new URL(url).pathname.split('/').slice(-1)[0] ?? 'file';
}
