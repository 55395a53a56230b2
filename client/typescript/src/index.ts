/**
 * A client of a mediagate gateway. It submits a request exactly once, waits for the end of the
 * task and fetches the files. It runs in browsers and on Node from 20 on, and needs only fetch
 * and WebCrypto.
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
  /** The time within which the whole answer must arrive. */
  whole?: number;
}

/** The fields of a request except the model, as in the model's schema. */
export type Fields = Record<string, unknown>;

export interface Options {
  /** The gateway's address, such as https://api.example.com. */
  url: string;
  key: string;
  /** Replaces the platform's fetch. */
  fetch?: typeof fetch;
  /** Whether the gateway refuses a field that the model does not have. By default the key's setting decides. */
  strict?: boolean;
}

export interface CallOptions {
  /** Ends the call. A task that was submitted continues. */
  signal?: AbortSignal;
}

export interface SubmitOptions extends CallOptions {
  /**
   * The path of the submit. By default it comes from the model's contract. Music models have no
   * contract: give /v1/music/generations or a path below it.
   */
  endpoint?: string;
  /** Within 24 hours, a repeated request with the same key returns the first task. By default each submit gets a new key. */
  idempotencyKey?: string;
}

export interface WaitOptions extends CallOptions {
  /** Called with the task after each poll until the task ends. */
  onProgress?: (task: Task) => void;
}

/** A file that a task made. */
export interface File {
  /** The number of the file, from 1, as in fileOf. */
  n: number;
  /** A link that works without a key. */
  url: string;
  mediaType: string | undefined;
  /** When the link expires. */
  expiresAt: Date;
}

/** An error that the gateway answered with. */
export class GatewayError extends Error {
  override name = 'GatewayError';
  constructor(
    message: string,
    readonly status: number,
    readonly type: string | undefined,
    /** The refused field, if the error is about a field. */
    readonly param: string | undefined,
    /** A stable word for programs, such as out_of_range. */
    readonly reason: string | undefined,
    readonly requestId: string | undefined,
    /** In seconds, if the gateway sent it. */
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

/** The outcome of a request is unknown: the answer to its submit was lost, or the wait for its task broke off. */
export class UnknownError extends Error {
  override name = 'UnknownError';
  constructor(
    cause: unknown,
    /** Repeating the request with this key returns its task and makes no second one. */
    readonly idempotencyKey: string,
    /** The task, if the submit was acknowledged. Pass it to wait to continue. */
    readonly taskId?: string,
  ) {
    const what = taskId ? `task ${taskId} continues` : `whether the task was made is unknown: repeat the request with the idempotency key ${idempotencyKey}`;
    super(`${what}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}

export class Mediagate {
  readonly #options: Options;
  readonly #fetch: typeof fetch;

  constructor(options: Options) {
    this.#options = options;
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis); // in browsers fetch is a method of the window
  }

  /** Lists the models that the key may use. */
  async models(category?: 'video' | 'image' | 'audio', options: CallOptions = {}): Promise<Model[]> {
    const query = category ? `&category=${category}` : '';
    return parsed<{ data: Model[] }>(await this.#repeat('GET', `/v1/models?expand=category${query}`, options)).data;
  }

  /** Fetches the contract of a video, image or art model: the path of the submit, the fields and the prices. */
  async schema(model: string, options: CallOptions = {}): Promise<Contract> {
    const text = await this.#repeat('GET', `/v1/model-schema?model=${encodeURIComponent(model)}`, options);
    try {
      const contract = parsed<Partial<Contract> | undefined>(text);
      if (contract?.endpoint) return contract as Contract;
    } catch {
      // not JSON
    }
    throw new Error(`the answer is no contract of ${model}: ${JSON.stringify(text.slice(0, 200))}`);
  }

  /** Returns the most that the request can cost. It makes and charges nothing. */
  async quote(model: string, fields: Fields, options: SubmitOptions = {}): Promise<Quote> {
    const endpoint = await this.#endpoint(model, options);
    return parsed(await this.#repeat('POST', '/v1/quote', { ...options, body: JSON.stringify({ ...fields, model, endpoint }) }));
  }

  /** Submits a request and returns the id of its task. It makes one task even if answers are lost. */
  async submit(model: string, fields: Fields, options: SubmitOptions = {}): Promise<string> {
    const endpoint = await this.#endpoint(model, options);
    if (!new RegExp(submitPath).test(endpoint)) {
      throw new Error(`${endpoint} is not the path of a submit of video, images, music or art`); // a speech has no task
    }
    const idempotencyKey = options.idempotencyKey ?? randomKey();
    try {
      return acknowledged(await this.#repeat('POST', endpoint, {
        ...options,
        body: JSON.stringify({ ...fields, model }),
        headers: {
          'Idempotency-Key': idempotencyKey,
          Prefer: 'respond-async', // otherwise a request in OpenAI's form is answered with the pictures, without the task's id
        },
      }));
    } catch (error) {
      throw error instanceof GatewayError && !error.temporary ? error : new UnknownError(error, idempotencyKey);
    }
  }

  /** Fetches the task as it is now. */
  task(id: string, options: CallOptions = {}): Promise<Task> {
    return this.#repeat('GET', taskPath(id), options, {}, (text) => taskOf(text, id));
  }

  /**
   * Waits until the task has ended and returns it, whether it succeeded or not. If the gateway is
   * away, silent or answers with something else, wait keeps trying for ten minutes.
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

  /** Fetches the task when it ends, or after so many seconds. */
  #look(id: string, seconds: number, options: CallOptions): Promise<Task> {
    const path = taskPath(id) + (seconds > 0 ? `?wait=${seconds}` : '');
    return this.#repeat('GET', path, options, { whole: seconds + longestSilence }, (text) => taskOf(text, id));
  }

  /**
   * Submits a request and waits for the end of its task. It throws a TaskError if the task does not
   * complete, and an UnknownError if the outcome is unknown.
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

  /** Requests the cancel of a task. It throws a GatewayError with status 409 if the task has ended. */
  async cancel(id: string, options: CallOptions = {}): Promise<Task> {
    return taskOf(await this.#once('POST', `${taskPath(id)}/cancel`, options), id);
  }

  /** Stores a file for 72 hours and returns its address, which requests can use. */
  async upload(kind: 'images' | 'videos' | 'audios', file: Blob, filename = 'upload', options: CallOptions = {}): Promise<Upload> {
    const body = new FormData();
    body.set('file', file, filename);
    return parsed(await this.#once('POST', `/v1/uploads/${kind}`, { ...options, body }, { held: file.size / leastPace }));
  }

  /** Downloads a file from its link. It throws if the server is silent for 30 seconds. */
  async download(file: File, options: CallOptions = {}): Promise<Response> {
    const response = await this.#send(file.url, { signal: options.signal ?? null });
    if (!response.ok) throw new Error(`file ${file.n}: the link answered ${response.status}`);
    return response;
  }

  /**
   * Makes a call, and repeats it up to six times if the answer is lost or the gateway asks to come
   * back later. So a call that creates something needs an Idempotency-Key. An answer also counts as
   * lost if it does not begin within 90 seconds or pauses for 30.
   */
  async call<T>(method: string, path: string, init: RequestInit = {}): Promise<T> {
    return parsed(await this.#repeat(method, path, init, { held: longestHeld })); // any complete answer ends the repeats
  }

  /** Makes a call until read accepts its answer, up to six times. */
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

  /** Makes a call and returns the text of its answer. It follows no redirect, which would send the key to another host. */
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
   * Sends a request and bounds the time until its answer begins. Then each piece of the body must
   * arrive within longestSilence after the caller asks for it, and all of them within whole.
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

/** Parses an answer. An empty one, such as that of a DELETE, is undefined. */
function parsed<T>(text: string): T {
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

function taskPath(id: string): string {
  return `/v1/tasks/${encodeURIComponent(id)}`;
}

/** Reads the task in an answer. A proxy may answer with a page instead, and a cache with another task. */
function taskOf(text: string, id: string): Task {
  try {
    const task = parsed<{ data?: Partial<Task> | null } | undefined>(text)?.data;
    if (task?.id === id && typeof task.status === 'string' && task.status) return task as Task;
  } catch {
    // not JSON
  }
  throw new Error(`the answer is not the task ${id}: ${JSON.stringify(text.slice(0, 200))}`);
}

/** Reads the task's id in the answer to a submit. */
function acknowledged(text: string): string {
  let id: unknown;
  try {
    id = parsed<Partial<Schemas['Acknowledgement']> | undefined>(text)?.data?.[0]?.task_id;
  } catch {
    // not JSON
  }
  if (typeof id !== 'string' || !/^\w+$/.test(id)) throw new Error(`the answer names no task: ${JSON.stringify(text.slice(0, 200))}`);
  return id;
}

/** Returns 128 random bits. crypto.randomUUID is missing on pages without TLS. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function ended(task: Task): boolean {
  return ['completed', 'failed', 'cancelled'].includes(task.status);
}

/** Reads an error in any of the gateway's forms, or of a proxy in front of it. */
function refusal({ status, statusText, headers, type }: Response, text: string): GatewayError {
  let error: { message?: string; type?: string; param?: string | null; reason?: string; code?: string | number; request_id?: string } = {};
  try {
    error = JSON.parse(text).error ?? {};
  } catch {
    // not JSON: only the status is known
  }
  const seconds = Number(headers.get('Retry-After') ?? NaN);
  const to = headers.get('Location');
  const redirected = to ? `redirected to ${to}, which is not followed` : type === 'opaqueredirect' ? 'redirected, which is not followed' : '';
  return new GatewayError(
    error.message ?? (redirected || statusText || `status ${status}`),
    status,
    error.type,
    error.param ?? undefined,
    error.reason ?? (typeof error.code === 'string' ? error.code : undefined), // music endpoints name it code
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
 * Returns the address of the n-th file of a task, from 1. A request can use it in place of a
 * file's URL, even while that task still runs: the new task waits for the file. So a chain of tasks
 * can be submitted at once.
 */
export function fileOf(taskId: string, n = 1): string {
  return `${taskPath(taskId)}/files/${n}`;
}

/** Lists the files of a completed task. */
export function files(task: Task): File[] {
  const { images = [], videos = [], audios = [] } = task.result ?? {};
  return [...images, ...videos, ...audios]
    .flatMap((item) => item.url.map((url) => ({ url, mediaType: item.mime_type, expiresAt: new Date((item.expires_at ?? 0) * 1000) })))
    .map((file, i) => ({ n: i + 1, ...file }));
}

/** How far the clocks of gateway and receiver may differ, in seconds. */
const tolerance = 300;

/**
 * The headers of a request in any form that servers use: Headers of any realm or package, a Map,
 * pairs, or an object as in Node. A value may be a list.
 */
export type WebhookHeaders =
  | Iterable<readonly [string, string | readonly string[] | undefined]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** Returns the value of a header, with its name in any case; empty if it is missing. Repeated headers are joined. */
function headerOf(headers: WebhookHeaders, name: string): string {
  const pairs = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  return pairs.filter(([key]) => key.toLowerCase() === name).flatMap(([, value]) => value ?? []).join(' ');
}

/**
 * The content of a webhook: an event that an endpoint of the account receives, or the end of a task
 * that the task's callback receives.
 */
export interface WebhookEvent {
  /** task.completed, task.failed, task.cancelled, balance.low, key.quota_low or test. More types may be added. */
  type: string;
  /** When the event happened (RFC 3339). A callback has no timestamp. */
  timestamp?: string;
  /** The task, for types that begin with "task.". */
  task?: Task;
  /** The data of the event. For a task event it is the task as it came. */
  data: Record<string, unknown>;
}

/**
 * Verifies a webhook (https://www.standardwebhooks.com) and returns its event. It throws if the
 * signature is not by the secret, or is older than five minutes. The secret (whsec_…) is the
 * account's for a callback, and the endpoint's own for an endpoint. The body must be the bytes of
 * the request, not JSON that was parsed and written again.
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
    if (key.length > 0) return key; // anybody could sign with an empty key
  } catch {
    // not Base64
  }
  throw new Error('the secret is not whsec_ with Base64 behind it');
}

function readEvent(text: string): WebhookEvent {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    // not JSON
  }
  if (isObject(read)) {
    // The body of a callback is the task itself.
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
