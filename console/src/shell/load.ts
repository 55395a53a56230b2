import { send } from '../api/client';

declare global {
  interface Window {
    /** Of public/reload.js. */
    reloadPage?: () => boolean;
  }
}

/** A part of the application that the service does not have, because it is of another version. */
export class MissingPart extends Error {}

/**
 * Loads a part of the application. While the service is away it is waited for, and the page
 * that is shown stays.
 */
export async function loadPart<M>(load: () => Promise<M>): Promise<M> {
  try {
    return await load();
  } catch {
    await answers();
  }
  try {
    await loadStyles();
    return await load();
  } catch (cause) {
    throw new MissingPart('a part of the page is missing', { cause });
  }
}

/** Waits until the service answers. */
async function answers(): Promise<void> {
  while (!(await send('GET', '/healthz').then(() => true, () => false))) await new Promise((resolve) => setTimeout(resolve, 1_000));
}

// The styles that did not come. Vite asks for those of a part once, and takes the part
// without them when it is loaded again.
const missing = new Set<HTMLLinkElement>();
window.addEventListener('error', ({ target }) => target instanceof HTMLLinkElement && target.rel === 'stylesheet' && missing.add(target), true);

async function loadStyles(): Promise<void> {
  const links = [...missing];
  missing.clear();
  await Promise.all(
    links.map((link) => {
      const again = link.cloneNode() as HTMLLinkElement;
      return new Promise((resolve, reject) => {
        again.addEventListener('load', resolve);
        again.addEventListener('error', reject);
        link.replaceWith(again);
      });
    }),
  );
}
