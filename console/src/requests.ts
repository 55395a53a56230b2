// The last requests of this browser tab, by the id of their task. Only the browser that
// made a request knows its body. It holds prompts, so it is erased with the session.

const name = 'mediagate.requests';
const most = 20;

export interface Request {
  endpoint: string;
  model: string;
  body: Record<string, unknown>;
}
export interface Remembered extends Request {
  task: string;
  at: number; // Unix seconds
}
interface Kept {
  draft?: Request;
  made: Remembered[];
}

function read(): Kept {
  try {
    return { made: [], ...(JSON.parse(sessionStorage.getItem(name) ?? '{}') as Partial<Kept>) };
  } catch {
    return { made: [] }; // no storage, or not ours
  }
}
function write(kept: Kept): void {
  try {
    sessionStorage.setItem(name, JSON.stringify(kept));
  } catch {
    // no storage, or no room: the request cannot be repeated from here, and that is all
  }
}

export function rememberRequest(request: Remembered): void {
  const kept = read();
  write({ ...kept, made: [request, ...kept.made.filter((r) => r.task !== request.task)].slice(0, most) });
}
export function requestOf(task: string): Remembered | undefined {
  return read().made.find((r) => r.task === task);
}
/** The requests that were sent, newest first. */
export function madeRequests(): Remembered[] {
  return read().made;
}

/** What is typed and not sent yet. */
export function draft(): Request | undefined {
  return read().draft;
}
export function keepDraft(request: Request): void {
  write({ ...read(), draft: request });
}

export function forgetRequests(): void {
  try {
    sessionStorage.removeItem(name);
  } catch {
    // no storage
  }
}
