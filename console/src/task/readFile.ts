// The origins that refuse scripts. Each refusal is a line in the browser's console, so an origin is tried once.
const refusals = new Set<string>();

/** Reads a file by its link. Returns null if the bucket does not let this page read it. */
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
