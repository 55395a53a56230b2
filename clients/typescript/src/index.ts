/**
 * A client of mediagate: it submits a request so that it is made once, waits for the end of
 * its task and fetches the files. For Node from 20 on and browsers; it needs fetch and
 * WebCrypto, and no other package.
 */
import type { components } from './document.js';
import { serverEvents } from './events.js';

type Schemas = components['schemas'];
export type Task = Schemas['Task'];
export type Quote = Schemas['Quote'];
export type Model = Schemas['ModelItem'];
export type Contract = Schemas['Contract'];
export type Upload = Schemas['UploadResult'];

/** The fields of a request beside its model, as the model's schema has them. */
export type Fields = Record<string, unknown>;

export interface Options {
  /** The gateway, such as https://api.example.com. */
  url: string;
  key: string;
  /** Another fetch than the platform's. */
  fetch?: typeof fetch;
  /** Whether a field that a model does not take is refused. Without it, the key's setting decides. */
  strict?: boolean;
}

export interface CallOptions {
  /** Ends the call. A task that was made goes on. */
  signal?: AbortSignal;
}

export interface SubmitOptions extends CallOptions {
  /**
   * The path of the submit; without it, the one that the model's contract names. Music has no
   * contract: /v1/music/generations, or one below it.
   */
  endpoint?: string;
  /** The same key for the same request makes it once, for 24 hours. Without it, one of its own. */
  idempotencyKey?: string;
}

export interface WaitOptions extends CallOptions {
  /** Hears of the task at each change that is seen, before its end. */
  onProgress?: (task: Task) => void;
}

/** A file that a task made. */
export interface File {
  /** From 1; the file is also at /v1/tasks/{id}/files/{n}. */
  n: number;
  /** A link that needs no key. */
  url: string;
  mediaType: string | undefined;
  /** When the link ends. */
  expiresAt: Date;
}

/** An answer that is an error. */
export class GatewayError extends Error {
  override name = 'GatewayError';
  constructor(
    message: string,
    readonly status: number,
    readonly type: string | undefined,
    /** The field that was refused, where there is one. */
    readonly param: string | undefined,
    /** A word that stays the same, such as out_of_range. */
    readonly reason: string | undefined,
    readonly requestId: string | undefined,
    /** In seconds, where the gateway named it. */
    readonly retryAfter: number | undefined,
    /** Whether the same call may succeed later. */
    readonly temporary: boolean,
  ) {
    super(message);
  }
}

/** A task that did not complete. */
export class TaskError extends Error {
  override name = 'TaskError';
  constructor(readonly task: Task) {
    super(task.error ? `task ${task.id} failed: ${task.error.message} (${task.error.code})` : `task ${task.id} is ${task.status}`);
  }
}

/** A submit whose fate is not known, or a task that goes on while nobody waits for it any more. */
export class UnknownError extends Error {
  override name = 'UnknownError';
  constructor(
    cause: unknown,
    /** With it the same request finds its task, and makes no second one. */
    readonly idempotencyKey: string,
    /** The task, where it is known that it was made: wait goes on with it. */
    readonly taskId?: string,
  ) {
    const what = taskId ? `task ${taskId} goes on` : `whether the task was made is not known, and its idempotency key ${idempotencyKey} tells`;
    super(`${what}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}

/** How often a call is made whose answer is lost or that is to come back later. */
const tries = 6;
/** The pause after the first try, in milliseconds; it doubles from there. */
const firstPause = 500;
/** The most that is waited because the gateway asks for it, in milliseconds. */
const longestPause = 60_000;
/** How long one look waits for a task's end, in seconds. */
const pollSeconds = 5;
/** How long a wait bears a gateway that is away, in milliseconds. */
const patience = 600_000;
/** A stream that is silent for so long is dead, in milliseconds: the gateway writes every ten seconds. */
const longestSilence = 30_000;

export class Mediagate {
  readonly #options: Options;
  readonly #fetch: typeof fetch;

  constructor(options: Options) {
    this.#options = options;
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis); // browsers' fetch is a method of the page
  }

  /** The models that the key may use. */
  async models(category?: 'video' | 'image' | 'audio', options: CallOptions = {}): Promise<Model[]> {
    const query = category ? `&category=${category}` : '';
    return (await this.call<{ data: Model[] }>('GET', `/v1/models?expand=category${query}`, options)).data;
  }

  /** What a request to a video or image model may hold, where it goes and what it costs. */
  schema(model: string, options: CallOptions = {}): Promise<Contract> {
    return this.call('GET', `/v1/model-schema?model=${encodeURIComponent(model)}`, options);
  }

  /** What the request costs at most. Nothing is made or charged. */
  async quote(model: string, fields: Fields, options: SubmitOptions = {}): Promise<Quote> {
    const endpoint = await this.#endpoint(model, options);
    return this.call('POST', '/v1/quote', { ...options, body: JSON.stringify({ ...fields, model, endpoint }) });
  }

  /** Has a task made, once, however often the answer is lost, and returns its id. */
  async submit(model: string, fields: Fields, options: SubmitOptions = {}): Promise<string> {
    const endpoint = await this.#endpoint(model, options);
    if (!/^\/v1\/(videos|images|music|artgen)\/generations(\/[\w-]+)*$/.test(endpoint)) {
      throw new Error(`${endpoint} is not the path of a submit of video, images, music or art`); // a speech is no task
    }
    const idempotencyKey = options.idempotencyKey ?? randomKey();
    const ack = await this.call<Schemas['Acknowledgement']>('POST', endpoint, {
      ...options,
      body: JSON.stringify({ ...fields, model }),
      headers: {
        'Idempotency-Key': idempotencyKey,
        Prefer: 'respond-async', // pictures in OpenAI's form would be the answer themselves, without the task's id
      },
    }).catch((error: unknown) => {
      throw error instanceof GatewayError && !error.temporary ? error : new UnknownError(error, idempotencyKey);
    });
    const id = ack.data[0]?.task_id;
    if (!id) throw new Error(`${endpoint} answered without a task`);
    return id;
  }

  /** The task as it is now. */
  async task(id: string, options: CallOptions = {}): Promise<Task> {
    return (await this.call<{ data: Task }>('GET', `/v1/tasks/${encodeURIComponent(id)}`, options)).data;
  }

  /**
   * Waits for the end of a task and returns it as it is then, whether it succeeded or not. It
   * follows the task's events; a stream that breaks off is resumed, and where there is none it polls.
   */
  async wait(id: string, options: WaitOptions = {}): Promise<Task> {
    const seen = { id: '' };
    for (let streams = true; ; ) {
      let heard = false;
      if (streams) {
        for await (const task of this.#events(id, seen, options.signal)) {
          heard = true;
          if (ended(task)) return task;
          options.onProgress?.(task);
        }
      }
      streams = heard; // a stream that brings nothing is not tried again
      const task = await this.#look(id, streams ? 1 : pollSeconds, options);
      if (ended(task)) return task;
      options.onProgress?.(task);
    }
  }

  /** The task at its end, or after so many seconds. A gateway that is away is waited for, ten minutes at most. */
  async #look(id: string, seconds: number, options: CallOptions): Promise<Task> {
    for (const until = Date.now() + patience; ; ) {
      try {
        return (await this.call<{ data: Task }>('GET', `/v1/tasks/${encodeURIComponent(id)}?wait=${seconds}`, options)).data;
      } catch (error) {
        if (options.signal?.aborted || (error instanceof GatewayError && !error.temporary) || Date.now() > until) throw error;
      }
    }
  }

  /**
   * Submits a request and waits for the end of its task. One that does not complete is a TaskError,
   * and one whose end is not known an UnknownError.
   */
  async run(model: string, fields: Fields, options: SubmitOptions & WaitOptions = {}): Promise<Task> {
    const idempotencyKey = options.idempotencyKey ?? randomKey();
    const id = await this.submit(model, fields, { ...options, idempotencyKey });
    const task = await this.wait(id, options).catch((error: unknown) => {
      throw new UnknownError(error, idempotencyKey, id);
    });
    if (task.status !== 'completed') throw new TaskError(task);
    return task;
  }

  /** Asks for the end of a task. One that has ended is a GatewayError with the status 409. */
  async cancel(id: string, options: CallOptions = {}): Promise<Task> {
    return (await this.#once<{ data: Task }>('POST', `/v1/tasks/${encodeURIComponent(id)}/cancel`, options)).data;
  }

  /** Stores a file for 72 hours, at an address that requests may name. */
  upload(kind: 'images' | 'videos' | 'audios', file: Blob, filename = 'upload', options: CallOptions = {}): Promise<Upload> {
    const body = new FormData();
    body.set('file', file, filename);
    return this.#once('POST', `/v1/uploads/${kind}`, { ...options, body });
  }

  /** The file itself, from its link. */
  async download(file: File, options: CallOptions = {}): Promise<Response> {
    const response = await this.#fetch(file.url, { signal: options.signal ?? null });
    if (!response.ok) throw new Error(`file ${file.n}: the link answered ${response.status}`);
    return response;
  }

  /**
   * Makes a call that may be repeated: it is, up to six times, where the answer is lost or the
   * gateway asks to come back later. What makes something needs an Idempotency-Key for that.
   */
  async call<T>(method: string, path: string, init: RequestInit = {}): Promise<T> {
    let text: string;
    for (let attempt = 1, pause = firstPause; ; attempt++, pause *= 2) {
      try {
        text = await this.#text(method, path, init);
        break;
      } catch (error) {
        const refused = error instanceof GatewayError ? error : undefined;
        if (attempt === tries || init.signal?.aborted || (refused && !refused.temporary)) throw error;
        await sleep(Math.min(Math.max(pause, (refused?.retryAfter ?? 0) * 1000), longestPause), init.signal ?? undefined);
      }
    }
    return parsed<T>(text); // an answer that came is not asked for again, whatever it is
  }

  async #endpoint(model: string, options: SubmitOptions): Promise<string> {
    return options.endpoint ?? (await this.schema(model, options)).endpoint;
  }

  /** The task at each change, until the stream ends or fails. What is wrong is told by the next look at the task. */
  async *#events(id: string, seen: { id: string }, signal: AbortSignal | undefined): AsyncGenerator<Task> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), longestSilence);
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), longestSilence);
    };
    try {
      const headers = this.#headers(seen.id ? { 'Last-Event-ID': seen.id } : {});
      const response = await this.#fetch(`${this.#base}/v1/tasks/${encodeURIComponent(id)}/events`, {
        headers,
        signal: AbortSignal.any(signal ? [signal, silence.signal] : [silence.signal]),
      });
      if (!response.body || !response.headers.get('Content-Type')?.startsWith('text/event-stream')) return;
      for await (const event of serverEvents(response.body, heard)) {
        if (event.name !== 'task') continue;
        const task = JSON.parse(event.data) as Task;
        seen.id = event.id;
        yield task;
      }
    } catch {
      signal?.throwIfAborted();
    } finally {
      clearTimeout(timer);
      silence.abort(); // closes the connection
    }
  }

  get #base(): string {
    return this.#options.url.replace(/\/$/, '');
  }

  #headers(more?: HeadersInit): Headers {
    const { key, strict } = this.#options;
    const headers = new Headers(more);
    headers.set('Authorization', `Bearer ${key}`);
    if (strict !== undefined) headers.set('Mediagate-Strict', String(strict));
    return headers;
  }

  async #once<T>(method: string, path: string, init: RequestInit): Promise<T> {
    return parsed<T>(await this.#text(method, path, init));
  }

  async #text(method: string, path: string, { body, headers, signal }: RequestInit): Promise<string> {
    const sent = this.#headers(headers);
    if (typeof body === 'string') sent.set('Content-Type', 'application/json');
    const response = await this.#fetch(this.#base + path, { method, body: body ?? null, headers: sent, signal: signal ?? null });
    const text = await response.text();
    if (!response.ok) throw refusal(response, text);
    return text;
  }
}

/** What an answer says; undefined for an empty one, such as that of a DELETE. */
function parsed<T>(text: string): T {
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

/** 128 random bits. Pages without TLS have no crypto.randomUUID. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function ended(task: Task): boolean {
  return ['completed', 'failed', 'cancelled'].includes(task.status);
}

/** An error of any of the gateway's forms, or of a proxy before it. */
function refusal({ status, statusText, headers }: Response, text: string): GatewayError {
  let error: { message?: string; type?: string; param?: string | null; reason?: string; code?: string | number; request_id?: string } = {};
  try {
    error = JSON.parse(text).error ?? {};
  } catch {
    // the status is all that is known
  }
  const seconds = Number(headers.get('Retry-After') ?? NaN);
  return new GatewayError(
    error.message ?? (statusText || `status ${status}`),
    status,
    error.type,
    error.param ?? undefined,
    error.reason ?? (typeof error.code === 'string' ? error.code : undefined), // music calls it code
    error.request_id ?? headers.get('X-Request-Id') ?? undefined,
    Number.isFinite(seconds) ? seconds : undefined,
    (status === 429 || status >= 500) && headers.get('X-Should-Retry') !== 'false',
  );
}

function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', leave);
      resolve();
    }, milliseconds);
    signal?.addEventListener('abort', leave, { once: true });
  });
}

/** The files of a completed task. */
export function files(task: Task): File[] {
  const { images = [], videos = [], audios = [] } = task.result ?? {};
  return [...images, ...videos, ...audios]
    .flatMap((item) => item.url.map((url) => ({ url, mediaType: item.mime_type, expiresAt: new Date((item.expires_at ?? 0) * 1000) })))
    .map((file, i) => ({ n: i + 1, ...file }));
}

/** How far the clocks of gateway and receiver may be apart, in seconds. */
const tolerance = 300;

/**
 * Reads the task of a webhook if it is signed with the account's secret (whsec_…) and at most
 * five minutes old (https://www.standardwebhooks.com); otherwise it throws. The body is that of
 * the request as it came, not parsed and written anew.
 */
export async function verifyWebhook(secret: string, headers: Headers | Record<string, string | string[] | undefined>, body: string | Uint8Array): Promise<Task> {
  const given = headers instanceof Headers ? headers : new Headers(Object.entries(headers).map(([name, value]): [string, string] => [name, String(value ?? '')]));
  const id = given.get('webhook-id');
  const timestamp = given.get('webhook-timestamp');
  if (!id || !timestamp || !(Math.abs(Date.now() / 1000 - Number(timestamp)) <= tolerance)) {
    throw new Error('the webhook has no id, or no timestamp of the last five minutes');
  }
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  const key = await crypto.subtle.importKey('raw', bytes(secret.replace(/^whsec_/, '')), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  for (const signature of (given.get('webhook-signature') ?? '').split(' ')) {
    const [version, value] = signature.split(',');
    if (version === 'v1' && value && (await crypto.subtle.verify('HMAC', key, bytes(value), signed))) return JSON.parse(text) as Task;
  }
  throw new Error('no signature of the webhook is by this secret');
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}
