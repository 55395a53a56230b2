// The form for an art task in MODAL, which waits for a mask painted over its image, a prompt, or both.
import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { ApiError, call } from '../api/client';
import { queryKeys } from '../api/queryKeys';
import { isLost, untilAnswered, useSubmitKey } from '../api/submit';
import type { Art, Task, Upload } from '../api/types';
import { mayUse, queryClient, useSession } from '../session';
import { Button, Field, Problem, TextArea, keepEnter } from '../ui';
import { words } from '../words';
import { Brush, type BrushHandle } from './Brush';
import { useLink } from './links';
import { refreshTask, taskQuery } from './useTask';
import css from './task.module.css';

const w = words.task.modal;

export function ModalForm({ task, art }: { task: Task; art: Art }) {
  const inpaints = art.action === 'INPAINT';
  const brush = useRef<BrushHandle>(null);
  const [prompt, setPrompt] = useState(art.prompt);
  const [fault, setFault] = useState<string | null>(null);
  const keys = useSubmitKey();
  const uploaded = useRef<{ bytes: Uint8Array; url: string }>(undefined);
  // The same mask keeps its link, because a repeated request has to be identical.
  const linkTo = async (mask: Blob) => {
    const bytes = new Uint8Array(await mask.arrayBuffer());
    const before = uploaded.current;
    if (before?.bytes.length === bytes.length && bytes.every((b, i) => b === before.bytes[i])) return before.url;
    const form = new FormData();
    form.append('file', mask, 'mask.png');
    const { url } = await call<Upload>('POST', '/v1/uploads/images', { body: form });
    uploaded.current = { bytes, url };
    return url;
  };
  const send = useMutation({
    mutationFn: async () => {
      const mask = await brush.current?.mask();
      if (inpaints && !mask) throw new Error(w.nothingPainted);
      if (!mask && prompt.trim() === '') throw new Error(w.nothingSaid);
      const body = { task_id: task.id, prompt: prompt.trim() || undefined, mask_url: mask && (await linkTo(mask)) };
      await call('POST', '/v1/artgen/generations/modal', { body, headers: { 'Idempotency-Key': keys.of(body) } });
    },
    ...untilAnswered,
    onSettled: (_, error) => keys.settle(error),
    onMutate: () => setFault(null),
    onError: (error: Error) => !(error instanceof ApiError) && !isLost(error) && setFault(error.message),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: queryKeys.art(task.id) });
      refreshTask(task.id);
    },
  });
  if (!mayUse(useSession(), 'generate')) return <p className="note warn">{w.notAllowed}</p>;
  const promptError = send.error instanceof ApiError && send.error.param === 'prompt' ? send.error.message : null;
  return (
    <form
      className={`${css.modal} stack`}
      onKeyDown={keepEnter}
      onSubmit={(e) => {
        e.preventDefault();
        send.mutate();
      }}
    >
      <div>
        <h2>{inpaints ? w.inpaint : w.other}</h2>
        <p className="soft">{inpaints ? w.inpaintHint : w.otherHint}</p>
      </div>
      {inpaints && <Ground sourceId={art.source_task_id} brush={brush} />}
      <TextArea label={w.prompt} hint={inpaints ? w.promptOptional : undefined} error={promptError} maxLength={6000} value={prompt} onChange={(e) => setPrompt(e.target.value)} />
      {fault && <p role="alert" className="note bad">{fault}</p>}
      {(send.error instanceof ApiError || isLost(send.error)) && !promptError && <Problem error={send.error} />}
      <div className="actions">
        <Button type="submit" variant="main" disabled={send.isPending}>
          {send.isPending ? w.sending : w.send}
        </Button>
      </div>
      <p className="hint">{w.deadline}</p>
    </form>
  );
}

/** The image below the mask: that of the source task, or else a file that the person chooses. */
function Ground({ sourceId, brush }: { sourceId: string | undefined; brush: React.Ref<BrushHandle> }) {
  const source = useQuery({ ...taskQuery(sourceId ?? ''), enabled: sourceId !== undefined });
  const [file, setFile] = useState<string | null>(null);
  useEffect(() => (file ? () => URL.revokeObjectURL(file) : undefined), [file]);
  const item = source.data?.result?.images?.find((i) => i.url.length > 0);
  if (sourceId && source.isPending) return null;
  if (item) return <SourceBrush id={sourceId!} url={item.url[0]!} until={item.expires_at} brush={brush} />;
  if (file) return <Brush ref={brush} src={file} />;
  return (
    <Field
      type="file"
      label={w.file}
      hint={w.fileHint}
      accept="image/*"
      onChange={(e) => {
        const chosen = e.target.files?.[0];
        if (chosen) setFile(URL.createObjectURL(chosen));
      }}
    />
  );
}

function SourceBrush({ id, url, until, brush }: { id: string; url: string; until: number; brush: React.Ref<BrushHandle> }) {
  const { src, onError } = useLink(id, url, until);
  return <Brush ref={brush} src={src} onError={onError} />;
}
