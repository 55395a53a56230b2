import { send } from '../api/client';

declare global {
  interface Window {
    /** Defined in public/reload.js. */
    reloadPage?: () => boolean;
  }
}

/** A part of the application that the service lacks, because it runs another version. */
export class MissingPart extends Error {}

/** Loads a part of the application. While the service cannot be reached, it waits, and the current page stays. */
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

/** Waits until the service responds. */
async function answers(): Promise<void> {
  while (!(await send('GET', '/healthz').then(() => true, () => false))) await new Promise((resolve) => setTimeout(resolve, 1_000));
}

// The stylesheets that failed to load. Vite requests each stylesheet once, and on a second attempt loads the part
// without it.
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
