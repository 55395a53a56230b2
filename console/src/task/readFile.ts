// A bucket that refuses scripts is asked once: each refusal is a line in the browser's console.
const refusals = new Set<string>();

/** Reads a file by its link; null where this page may not. */
export async function readFile(url: string, signal?: AbortSignal): Promise<Response | null> {
  const { origin } = new URL(url);
  if (refusals.has(origin)) return null;
  try {
    const response = await fetch(url, { signal });
    return response.ok ? response : null;
  } catch {
    if (!signal?.aborted) refusals.add(origin);
    return null;
  }
}
