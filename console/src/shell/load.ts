declare global {
  interface Window {
    /** Of public/reload.js. */
    reloadPage?: () => boolean;
  }
}

/**
 * Loads a part of the application. While the service is away it is waited for, and the page
 * that is shown stays. A part that the service does not have is of another version: the page
 * is loaded again.
 */
export function loadPart<M>(load: () => Promise<M>): Promise<M> {
  return load()
    .catch(() => answers().then(load))
    .catch((error: unknown) => {
      if (!window.reloadPage?.()) throw error;
      return new Promise<never>(() => {});
    });
}

/** Waits until the service answers. */
async function answers(): Promise<void> {
  while (!(await fetch('/healthz').then((answer) => answer.ok, () => false))) await new Promise((resolve) => setTimeout(resolve, 1_000));
}
