/**
 * A client of mediagate: it submits a request so that it is made once, waits for the end of
 * its task and fetches the files. For Node from 20 on and browsers; it needs fetch and
 * WebCrypto, and no other package.
 */
import type { components } from './document.js';
import { firstPause, leastPace, longestHeld, longestPause, longestSilence, lookPause, patience, poll, submitPath, tries } from './behaviours.js';

type Schemas = components['schemas'];
export type Task = Schemas['Task'];
export type Source = Schemas['Source'];
export type Quote = Schemas['Quote'];
export type Model = Schemas['ModelItem'];
export type Contract = Schemas['Contract'];
export type Upload = Schemas['UploadResult'];

/** Time limits of a call, in seconds. */
interface Bounds {
  /** How long the gateway may hold back the answer. */
  held?: number;
  /** Within this the whole answer has to come. */
  whole?: number;
}

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
  /** Hears of the task after each look at it, before its end. */
  onProgress?: (task: Task) => void;
}

/** A file that a task made. */
export interface File {
  /** From 1, as in fileOf. */
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
    return parsed<{ data: Model[] }>(await this.#repeat('GET', `/v1/models?expand=category${query}`, options)).data;
  }

  /** What a request to a video or image model may hold, where it goes and what it costs. */
  async schema(model: string, options: CallOptions = {}): Promise<Contract> {
    const text = await this.#repeat('GET', `/v1/model-schema?model=${encodeURIComponent(model)}`, options);
    try {
      const contract = parsed<Partial<Contract> | undefined>(text);
      if (contract?.endpoint) return contract as Contract;
    } catch {
      // it is no JSON
    }
    throw new Error(`the answer is no contract of ${model}: ${JSON.stringify(text.slice(0, 200))}`);
  }

  /** What the request costs at most. Nothing is made or charged. */
  async quote(model: string, fields: Fields, options: SubmitOptions = {}): Promise<Quote> {
    const endpoint = await this.#endpoint(model, options);
    return parsed(await this.#repeat('POST', '/v1/quote', { ...options, body: JSON.stringify({ ...fields, model, endpoint }) }));
  }

  /** Has a task made, once, however often the answer is lost, and returns its id. */
  async submit(model: string, fields: Fields, options: SubmitOptions = {}): Promise<string> {
    const endpoint = await this.#endpoint(model, options);
    if (!new RegExp(submitPath).test(endpoint)) {
      throw new Error(`${endpoint} is not the path of a submit of video, images, music or art`); // a speech is no task
    }
    const idempotencyKey = options.idempotencyKey ?? randomKey();
    try {
      return acknowledged(await this.#repeat('POST', endpoint, {
        ...options,
        body: JSON.stringify({ ...fields, model }),
        headers: {
          'Idempotency-Key': idempotencyKey,
          Prefer: 'respond-async', // pictures in OpenAI's form would be the answer themselves, without the task's id
        },
      }));
    } catch (error) {
      throw error instanceof GatewayError && !error.temporary ? error : new UnknownError(error, idempotencyKey);
    }
  }

  /** The task as it is now. */
  task(id: string, options: CallOptions = {}): Promise<Task> {
    return this.#repeat('GET', taskPath(id), options, {}, (text) => taskOf(text, id));
  }

  /**
   * Waits for the end of a task and returns it as it is then, whether it succeeded or not. A gateway
   * that is away, silent or answers with something else is waited for, ten minutes at most.
   */
  async wait(id: string, options: WaitOptions = {}): Promise<Task> {
    let heard = Date.now();
    for (let seconds = 0; ; seconds = poll) {
      const asked = Date.now();
      const task = await this.#look(id, seconds, options).catch((error: unknown) => {
        const refused = error instanceof GatewayError && !error.temporary;
        if (options.signal?.aborted || refused || Date.now() - heard > patience * 1000) throw error;
        return undefined;
      });
      if (task) {
        if (ended(task)) return task;
        heard = Date.now();
        options.onProgress?.(task);
      }
      if (!task || (seconds > 0 && Date.now() - asked < lookPause * 1000)) await sleep(lookPause, options.signal); // the gateway did not wait
    }
  }

  /** The task at its end, or after so many seconds. */
  #look(id: string, seconds: number, options: CallOptions): Promise<Task> {
    const path = taskPath(id) + (seconds > 0 ? `?wait=${seconds}` : '');
    return this.#repeat('GET', path, options, { whole: seconds + longestSilence }, (text) => taskOf(text, id));
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
    return taskOf(await this.#once('POST', `${taskPath(id)}/cancel`, options), id);
  }

  /** Stores a file for 72 hours, at an address that requests may name. */
  async upload(kind: 'images' | 'videos' | 'audios', file: Blob, filename = 'upload', options: CallOptions = {}): Promise<Upload> {
    const body = new FormData();
    body.set('file', file, filename);
    return parsed(await this.#once('POST', `/v1/uploads/${kind}`, { ...options, body }, { held: file.size / leastPace }));
  }

  /** The file itself, from its link. A server that is silent for 30 seconds ends it with an error. */
  async download(file: File, options: CallOptions = {}): Promise<Response> {
    const response = await this.#send(file.url, { signal: options.signal ?? null });
    if (!response.ok) throw new Error(`file ${file.n}: the link answered ${response.status}`);
    return response;
  }

  /**
   * Makes a call that may be repeated: it is, up to six times, where the answer is lost or the
   * gateway asks to come back later. What makes something needs an Idempotency-Key for that.
   * An answer is lost, too, if it does not begin within 90 seconds, or pauses for 30.
   */
  async call<T>(method: string, path: string, init: RequestInit = {}): Promise<T> {
    return parsed(await this.#repeat(method, path, init, { held: longestHeld })); // an answer that came is not asked for again, whatever it is
  }

  /** Makes a call until read takes its answer, up to six times. */
  async #repeat<T = string>(
    method: string,
    path: string,
    init: RequestInit,
    bounds: Bounds = {},
    read: (text: string) => T = (text) => text as T,
  ): Promise<T> {
    for (let attempt = 1, pause = firstPause; ; attempt++, pause *= 2) {
      try {
        return read(await this.#once(method, path, init, bounds));
      } catch (error) {
        const refused = error instanceof GatewayError ? error : undefined;
        if (attempt === tries || init.signal?.aborted || (refused && !refused.temporary)) throw error;
        await sleep(Math.min(Math.max(pause, refused?.retryAfter ?? 0), longestPause), init.signal ?? undefined);
      }
    }
  }

  async #endpoint(model: string, options: SubmitOptions): Promise<string> {
    return options.endpoint || (await this.schema(model, options)).endpoint;
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

  /** Makes a call and returns the text of its answer. A redirect is not followed: it would take the key along. */
  async #once(method: string, path: string, { body, headers, signal }: RequestInit, bounds: Bounds = {}): Promise<string> {
    const sent = this.#headers(headers);
    if (typeof body === 'string') sent.set('Content-Type', 'application/json');
    const init: RequestInit = { method, body: body ?? null, cache: 'no-store', headers: sent, redirect: 'manual', signal: signal ?? null };
    const response = await this.#send(this.#base + path, init, bounds);
    const text = await response.text();
    if (!response.ok) throw refusal(response, text);
    return text;
  }

  /**
   * Sends a request whose answer has to begin in time. Each piece of its body then has
   * longestSilence from when the caller asks for it, or all of them what is left of the whole.
   */
  async #send(url: string, init: RequestInit, { held = 0, whole }: Bounds = {}): Promise<Response> {
    const silence = new AbortController();
    const end = whole === undefined ? Infinity : Date.now() + whole * 1000;
    const within = async <T>(seconds: number, answer: () => Promise<T>): Promise<T> => {
      const silent = () => silence.abort(new Error('the server is silent: the answer did not come in time'));
      const timer = setTimeout(silent, Math.min(seconds * 1000, end - Date.now()));
      try {
        return await answer();
      } finally {
        clearTimeout(timer);
      }
    };
    const signal = AbortSignal.any(init.signal ? [init.signal, silence.signal] : [silence.signal]);
    const pace = typeof init.body === 'string' ? init.body.length / leastPace : 0;
    const response = await within(whole ?? longestSilence + held + pace, () => this.#fetch(url, { ...init, signal }));
    if (!response.body) return response;
    const reader = response.body.getReader();
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = await within(longestSilence, () => reader.read());
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    }, { highWaterMark: 0 });
    return new Response(body, response);
  }
}

/** What an answer says; undefined for an empty one, such as that of a DELETE. */
function parsed<T>(text: string): T {
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

function taskPath(id: string): string {
  return `/v1/tasks/${encodeURIComponent(id)}`;
}

/** The task that an answer is: a proxy may answer with a page, and a cache with the task of somebody else. */
function taskOf(text: string, id: string): Task {
  try {
    const task = parsed<{ data?: Partial<Task> | null } | undefined>(text)?.data;
    if (task?.id === id && typeof task.status === 'string' && task.status) return task as Task;
  } catch {
    // it is no JSON
  }
  throw new Error(`the answer is not the task ${id}: ${JSON.stringify(text.slice(0, 200))}`);
}

/** The id that the answer to a submit names. */
function acknowledged(text: string): string {
  let id: unknown;
  try {
    id = parsed<Partial<Schemas['Acknowledgement']> | undefined>(text)?.data?.[0]?.task_id;
  } catch {
    // it is no JSON
  }
  if (typeof id !== 'string' || !/^\w+$/.test(id)) throw new Error(`the answer names no task: ${JSON.stringify(text.slice(0, 200))}`);
  return id;
}

/** 128 random bits. Pages without TLS have no crypto.randomUUID. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function ended(task: Task): boolean {
  return ['completed', 'failed', 'cancelled'].includes(task.status);
}

/** An error of any of the gateway's forms, or of a proxy before it. */
function refusal({ status, statusText, headers, type }: Response, text: string): GatewayError {
  let error: { message?: string; type?: string; param?: string | null; reason?: string; code?: string | number; request_id?: string } = {};
  try {
    error = JSON.parse(text).error ?? {};
  } catch {
    // the status is all that is known
  }
  const seconds = Number(headers.get('Retry-After') ?? NaN);
  const to = headers.get('Location');
  const redirected = to ? `redirected to ${to}, which is not followed` : type === 'opaqueredirect' ? 'redirected, which is not followed' : '';
  return new GatewayError(
    error.message ?? (redirected || statusText || `status ${status}`),
    status,
    error.type,
    error.param ?? undefined,
    error.reason ?? (typeof error.code === 'string' ? error.code : undefined), // music calls it code
    error.request_id ?? headers.get('X-Request-Id') ?? undefined,
    Number.isFinite(seconds) ? seconds : undefined,
    (status === 429 || status >= 500) && headers.get('X-Should-Retry') !== 'false',
  );
}

async function sleep(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', leave);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener('abort', leave, { once: true });
  });
}

/**
 * The address of the n-th file of a task, from 1. A field of a request takes it where it takes the
 * URL of a file, also while that task still runs: the new task waits for it. So a whole chain can
 * be submitted at once.
 */
export function fileOf(taskId: string, n = 1): string {
  return `${taskPath(taskId)}/files/${n}`;
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
 * The headers of a request, however a server gives them: Headers of any realm or package, a Map,
 * pairs, or an object such as those of Node. A value may be a list.
 */
export type WebhookHeaders =
  | Iterable<readonly [string, string | readonly string[] | undefined]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** The value of a header, whose name may be in any case; empty without one. Several signatures are a list of one header. */
function headerOf(headers: WebhookHeaders, name: string): string {
  const pairs = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  return pairs.filter(([key]) => key.toLowerCase() === name).flatMap(([, value]) => value ?? []).join(' ');
}

/**
 * The content of a webhook: an event of the account, which an endpoint receives, or the end of a task,
 * which its callback receives.
 */
export interface WebhookEvent {
  /** task.completed, task.failed, task.cancelled, balance.low, key.quota_low or test; more may come. */
  type: string;
  /** When it happened, in the form of RFC 3339; a callback has none. */
  timestamp?: string;
  /** The task of the types that begin with task. */
  task?: Task;
  /** Of a task, the task. */
  data: Record<string, unknown>;
}

/**
 * Reads the event of a webhook if it is signed with the secret and at most five minutes old
 * (https://www.standardwebhooks.com); otherwise it throws. The secret (whsec_…) is the account's for a
 * callback, and the endpoint's for what it receives. The body is that of the request as it came, not
 * parsed and written anew.
 */
export async function verifyWebhook(secret: string, headers: WebhookHeaders, body: string | Uint8Array): Promise<WebhookEvent> {
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  if (!id || !timestamp || !(Math.abs(Date.now() / 1000 - Number(timestamp)) <= tolerance)) {
    throw new Error('the webhook has no id, or no timestamp of the last five minutes');
  }
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  const key = await crypto.subtle.importKey('raw', secretBytes(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  for (const signature of headerOf(headers, 'webhook-signature').split(' ')) {
    const [version, value] = signature.split(',');
    if (version === 'v1' && value && (await crypto.subtle.verify('HMAC', key, bytes(value), signed))) return readEvent(text);
  }
  throw new Error('no signature of the webhook is by this secret');
}

function secretBytes(secret: string): Uint8Array<ArrayBuffer> {
  try {
    const key = bytes(secret.replace(/^whsec_/, ''));
    if (key.length > 0) return key; // anybody could sign with none
  } catch {
    // it is no Base64
  }
  throw new Error('the secret is not whsec_ with Base64 behind it');
}

function readEvent(text: string): WebhookEvent {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    // it is no JSON
  }
  if (isObject(read)) {
    // A callback is the task alone.
    const { type, timestamp, data } = 'data' in read ? read : { type: `task.${read['status']}`, data: read };
    if (typeof type === 'string' && type && isObject(data)) {
      const event: WebhookEvent = { type, data, ...(typeof timestamp === 'string' && { timestamp }) };
      if (!type.startsWith('task.')) return event;
      if (data['id'] && data['status']) return { ...event, task: data as unknown as Task };
    }
  }
  throw new Error('the webhook is neither an event nor a task');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}
