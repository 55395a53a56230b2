// What this browser tab keeps until the session ends: the request that is being typed, and speeches, which the service
// does not store. Both may contain prompts, so both are erased with the session.

const name = 'mediagate.requests';

export interface Request {
  endpoint: string;
  model: string;
  body: Record<string, unknown>;
}
/** A generated speech with its audio. */
export interface Speech {
  at: number; // milliseconds
  model: string;
  text: string;
  format: string;
  data: string; // base64
}
interface Kept {
  draft?: Request;
  speeches: Speech[];
}

function read(): Kept {
  try {
    return { speeches: [], ...(JSON.parse(sessionStorage.getItem(name) ?? '{}') as Partial<Kept>) };
  } catch {
    return { speeches: [] }; // no storage, or not in our format
  }
}
/** Stores the data, and reports whether there was room. */
function write(kept: Kept): boolean {
  try {
    sessionStorage.setItem(name, JSON.stringify(kept));
    return true;
  } catch {
    return false;
  }
}

/** The request that was typed and not submitted. */
export function draft(): Request | undefined {
  return read().draft;
}
export function keepDraft(request: Request): void {
  write({ ...read(), draft: request });
}

const mostSpeeches = 4;

/** The speeches of a model, newest first. */
export function speechesOf(model: string): Speech[] {
  return read().speeches.filter((speech) => speech.model === model);
}
/** Keeps a speech, and as many of the older ones as there is room for. */
export function keepSpeech(speech: Speech): void {
  const kept = read();
  const speeches = [speech, ...kept.speeches].slice(0, mostSpeeches);
  while (!write({ ...kept, speeches }) && speeches.length > 0) speeches.pop();
}
export function forgetSpeech(at: number): void {
  const kept = read();
  write({ ...kept, speeches: kept.speeches.filter((speech) => speech.at !== at) });
}

export function forgetRequests(): void {
  try {
    sessionStorage.removeItem(name);
  } catch {
    // no storage
  }
}
