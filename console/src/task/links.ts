// Links are signed anew at each read of a task. The player that plays one must keep it:
// another address of the same file would begin anew. So a file's first link counts as
// long as it works.
import { useState } from 'react';
import { refreshTask } from './useTask';

const kept = new Map<string, { url: string; until: number }>();
const bad = new Set<string>();

// Links differ in their query only.
const fileOf = (url: string) => url.split('?', 1)[0]!;

/** The link to a file to use now, of one that was just read and works until then. */
export function lasting(url: string, until: number): string {
  const file = fileOf(url);
  const known = kept.get(file);
  if (known && !bad.has(known.url) && known.until - Date.now() / 1000 > 90) return known.url;
  kept.set(file, { url, until });
  return url;
}

/** What to give an element that shows a file: when it fails, the task is read again, at most
 * once a minute, so that a file which is broken does not lead to reads without end. */
export function useLink(taskId: string, url: string, until: number) {
  const [failed, setFailed] = useState({ src: '', at: 0 });
  const src = lasting(url, until);
  const onError = () => {
    bad.add(src);
    // Links of one second are the same.
    if (Date.now() - failed.at > 60_000) window.setTimeout(() => refreshTask(taskId), 1_100);
    setFailed({ src, at: Date.now() });
  };
  return { src, onError, broken: failed.src === src };
}
