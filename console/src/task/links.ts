// The API signs new links at each read of a task. A player that gets another URL for the same file starts again from
// the beginning. So the page keeps using the first link of a file for as long as that link works.
import { useState } from 'react';
import { refreshTask } from './useTask';

const kept = new Map<string, { url: string; until: number }>();
const bad = new Set<string>();

// Links to the same file differ only in the query.
const fileOf = (url: string) => url.split('?', 1)[0]!;

/** The link to use for a file, given the link of the latest read and its expiry. */
export function lasting(url: string, until: number): string {
  const file = fileOf(url);
  const known = kept.get(file);
  if (known && !bad.has(known.url) && known.until - Date.now() / 1000 > 90) return known.url;
  kept.set(file, { url, until });
  return url;
}

/** The src and onError of an element that shows a file. When the file fails to load, the task is read again for a new
 * link, at most once a minute: a broken file must not cause endless reads. */
export function useLink(taskId: string, url: string, until: number) {
  const [failed, setFailed] = useState({ src: '', at: 0 });
  const src = lasting(url, until);
  const onError = () => {
    bad.add(src);
    // Links that are signed within the same second are equal, so the read has to come later.
    if (Date.now() - failed.at > 60_000) window.setTimeout(() => refreshTask(taskId), 1_100);
    setFailed({ src, at: Date.now() });
  };
  return { src, onError, broken: failed.src === src };
}
