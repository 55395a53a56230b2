// Fields for media. A dropped or chosen file is uploaded, and the request holds its link.
import { useMutation } from '@tanstack/react-query';
import { useState, type DragEvent } from 'react';
import { call, wordsOf } from '../../api/client';
import type { Upload } from '../../api/types';
import { mayUse, useSession } from '../../session';
import { Button } from '../../ui';
import { words } from '../../words';
import { taskFileOf, typedAddress, type Media } from '../../task/files';
import { TaskThumb } from '../../task/TaskThumb';
import { useGroup, useInput } from './field';
import { isPicture } from './picture';
import { mediaKindOf, type Schema } from './schema';
import type { InputProps } from './widgets';
import css from './playground.module.css';
import taskCSS from '../../task/task.module.css';

const w = words.playground.media;

const megabyte = 1024 * 1024;

/** The limits on uploads of each kind. */
const limits: Record<Media, { accept: string; most: number; path: string }> = {
  image: { accept: 'image/jpeg,image/png,image/webp,image/gif', most: 20 * megabyte, path: '/v1/uploads/images' },
  video: { accept: 'video/mp4,video/quicktime,video/webm', most: 100 * megabyte, path: '/v1/uploads/videos' },
  audio: { accept: 'audio/*,.mp3,.wav,.m4a,.ogg,.flac,.aac', most: 20 * megabyte, path: '/v1/uploads/audios' },
};

/** Why a file cannot be uploaded, or undefined. An image is recognized by its bytes, because its type only follows its
 * name. */
async function refusal(kind: Media, file: File): Promise<string | undefined> {
  const { most } = limits[kind];
  if (file.size === 0) return w.empty(file.name);
  const fits = kind === 'image' ? isPicture(new Uint8Array(await file.slice(0, 12).arrayBuffer())) : file.type.startsWith(`${kind}/`);
  if (!fits) return w.wrongType[kind](file.name);
  if (file.size > most) return w.tooLarge(file.name, (file.size / megabyte).toFixed(1), most / megabyte);
  return undefined;
}

// The files that this page has uploaded, by link. They are previewed from the file itself, or shown by name.
const uploaded = new Map<string, { name: string; preview: string | undefined }>();

async function upload(kind: Media, file: File): Promise<string> {
  const form = new FormData();
  form.append('file', file);
  const { url } = await call<Upload>('POST', limits[kind].path, { body: form });
  uploaded.set(url, { name: file.name, preview: kind === 'image' ? URL.createObjectURL(file) : undefined });
  return url;
}

// The content policy lets the page preview images of its own origin only. Others are shown by their host.
function previewOf(url: string): string | undefined {
  const own = uploaded.get(url);
  if (own) return own.preview;
  return URL.canParse(url) && new URL(url).origin === window.location.origin ? url : undefined;
}

function Thumb({ url, alt }: { url: string; alt: string }) {
  const file = taskFileOf(url, window.location.origin);
  return file ? <TaskThumb file={file} alt={alt} /> : <Preview url={url} alt={alt} />;
}

function Preview({ url, alt }: { url: string; alt: string }) {
  const [broken, setBroken] = useState(false);
  const source = previewOf(url);
  if (source && !broken) return <img className={taskCSS.filethumb} src={source} alt={alt} onError={() => setBroken(true)} />;
  return (
    <span className={`${taskCSS.filethumb} ${taskCSS.nothumb} foreign`} title={url}>
      {uploaded.get(url)?.name ?? (URL.canParse(url) ? new URL(url).hostname : url.slice(0, 40))}
    </span>
  );
}

/** Accepts dropped and chosen files, and reports why a file is refused. */
function useUploads(kind: Media, onUploaded: (urls: string[]) => void, room: number) {
  const [refused, setRefused] = useState<string>();
  const [over, setOver] = useState(false);
  const session = useSession();
  const uploading = useMutation({ mutationFn: (files: File[]) => Promise.all(files.map((file) => upload(kind, file))), onSuccess: onUploaded });
  const take = async (files: File[]) => {
    const wrong = (await Promise.all(files.map((file) => refusal(kind, file)))).find((r) => r !== undefined) ?? (files.length > room ? w.tooMany(room) : undefined);
    setRefused(wrong);
    uploading.reset();
    if (!wrong && files.length) uploading.mutate(files);
  };
  return {
    kind,
    allowed: mayUse(session, 'generate'),
    busy: uploading.isPending,
    problem: refused ?? (uploading.isError ? wordsOf(uploading.error) : undefined),
    take,
    drop: {
      'data-over': over || undefined,
      onDragOver: (e: DragEvent) => {
        e.preventDefault();
        setOver(true);
      },
      onDragLeave: () => setOver(false),
      onDrop: (e: DragEvent) => {
        e.preventDefault();
        setOver(false);
        void take([...e.dataTransfer.files]);
      },
    },
  };
}

function FileButton({ id, label, multiple, uploads }: { id: string; label: string; multiple: boolean; uploads: ReturnType<typeof useUploads> }) {
  const { kind, busy, take } = uploads;
  return (
    <>
      <input
        className={`sr ${css.file}`}
        type="file"
        id={`${id}-file`}
        accept={limits[kind].accept}
        multiple={multiple}
        disabled={busy}
        aria-label={label}
        onChange={(e) => {
          void take([...(e.target.files ?? [])]);
          e.target.value = ''; // so that the same file can be chosen again
        }}
      />
      <label className="button" htmlFor={`${id}-file`}>
        {busy ? w.uploading : w.choose}
      </label>
    </>
  );
}

const Said = ({ text }: { text: string | undefined }) => (
  <p className="fault foreign" role="status">
    {text}
  </p>
);

/** The field for one URL. A typed task ID becomes the address of its file when the field loses the focus. */
function Address({ id, url, placeholder, onChange }: { id: string; url: string; placeholder: string; onChange: (value: unknown) => void }) {
  return (
    <input
      {...useInput(id)}
      type="url"
      value={url}
      placeholder={placeholder}
      onChange={(e) => onChange(e.target.value || undefined)}
      onBlur={() => typedAddress(url) !== url && onChange(typedAddress(url) || undefined)}
    />
  );
}

/** The field for one file, which can be dropped, chosen or given by its URL. */
export function FileInput({ id, schema, value, onChange }: InputProps) {
  const kind = mediaKindOf(schema) ?? 'image';
  const url = typeof value === 'string' ? value : '';
  const uploads = useUploads(kind, (urls) => onChange(urls[0]), 1);
  return (
    <>
      <div className={css.drop} {...uploads.drop}>
        {url !== '' && <Thumb url={url} alt={w.preview} />}
        <Address id={id} url={url} placeholder={uploads.allowed ? w.dropOrPaste[kind] : w.paste} onChange={onChange} />
        {uploads.allowed && <FileButton id={id} label={w.chooseFor(String(schema.title))} multiple={false} uploads={uploads} />}
        {url !== '' && (
          <Button variant="quiet" onClick={() => onChange(undefined)} aria-label={w.removeFrom(String(schema.title))}>
            ✕
          </Button>
        )}
      </div>
      <Said text={uploads.problem} />
    </>
  );
}

interface ListProps {
  id: string;
  schema: Schema;
  value: string[];
  onChange: (value: string[]) => void;
}

// In requests made elsewhere, an item may be an object with the URL.
const urlOf = (item: unknown) => (typeof item === 'string' ? item : String((item as { url?: unknown } | null)?.url ?? ''));

/** The field that adds a URL to a list. */
function AddAddress({ id, placeholder, onAdd, title }: { id: string; placeholder: string; title: string; onAdd: (url: string) => void }) {
  const [text, setText] = useState('');
  const add = () => {
    if (text.trim()) onAdd(typedAddress(text));
    setText('');
  };
  return (
    <>
      <input
        type="url"
        id={id}
        aria-label={w.addressFor(title)}
        value={text}
        placeholder={placeholder}
        onChange={(e) => setText(e.target.value)}
        onBlur={add}
        onKeyDown={(e) => {
          if (e.key !== 'Enter' || !text.trim()) return;
          e.preventDefault();
          add();
        }}
      />
      {text.trim() !== '' && <Button onClick={add}>{w.add}</Button>}
    </>
  );
}

/** The field for several images, in their order. */
export function Images({ id, schema, value, onChange }: ListProps) {
  const title = String(schema.title);
  const urls = value.map(urlOf);
  const room = (schema.maxItems ?? 100) - urls.length;
  const uploads = useUploads('image', (more) => onChange([...urls, ...more]), room);
  const swap = (i: number) => urls.map((u, j) => (j === i - 1 ? urls[i]! : j === i ? urls[i - 1]! : u));
  return (
    <div {...useGroup(id)} className={css.list}>
      {urls.length > 0 && (
        <ol className={css.thumbs}>
          {urls.map((url, i) => (
            <li key={`${i} ${url}`}>
              <Thumb url={url} alt={w.picture(i + 1)} />
              <span className={css.thumbtools}>
                {i > 0 && (
                  <button type="button" onClick={() => onChange(swap(i))} aria-label={w.earlier(i + 1)}>
                    ←
                  </button>
                )}
                <button type="button" onClick={() => onChange(urls.filter((_, j) => j !== i))} aria-label={w.removePicture(i + 1)}>
                  ✕
                </button>
              </span>
            </li>
          ))}
        </ol>
      )}
      {room > 0 && (
        <div className={css.drop} {...uploads.drop}>
          <AddAddress id={id} title={title} placeholder={uploads.allowed ? w.dropOrPasteMany.image : w.paste} onAdd={(url) => onChange([...urls, url])} />
          {uploads.allowed && <FileButton id={id} label={w.chooseFor(title)} multiple={room > 1} uploads={uploads} />}
        </div>
      )}
      <Said text={uploads.problem} />
    </div>
  );
}

/** The field for several audio files or videos. */
export function Links({ id, schema, value, onChange }: ListProps) {
  const title = String(schema.title);
  const kind = mediaKindOf(schema) ?? 'video';
  const urls = value.map(urlOf);
  const room = (schema.maxItems ?? 100) - urls.length;
  const uploads = useUploads(kind, (more) => onChange([...urls, ...more]), room);
  return (
    <div {...useGroup(id)} className={css.list}>
      {urls.map((url, i) => (
        <div className={css.link} key={i}>
          {taskFileOf(url, window.location.origin) && <Thumb url={url} alt={w.file(i + 1)} />}
          <span className="foreign mono">{uploaded.get(url)?.name ?? url}</span>
          <Button variant="quiet" onClick={() => onChange(urls.filter((_, j) => j !== i))} aria-label={w.removeAddress(i + 1)}>
            ✕
          </Button>
        </div>
      ))}
      {room > 0 && (
        <div className={css.drop} {...uploads.drop}>
          <AddAddress id={id} title={title} placeholder={uploads.allowed ? w.dropOrPasteMany[kind] : w.paste} onAdd={(url) => onChange([...urls, url])} />
          {uploads.allowed && <FileButton id={id} label={w.chooseFor(title)} multiple={room > 1} uploads={uploads} />}
        </div>
      )}
      <Said text={uploads.problem} />
    </div>
  );
}
