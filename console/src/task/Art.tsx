// The images of an art task, with the buttons that the vendor offers for them. Each button submits a new task.
import { useMutation, useQueries } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { call } from '../api/client';
import { queryKeys } from '../api/queryKeys';
import { untilAnswered, useSubmitKey } from '../api/submit';
import type { Button as ArtButton, Item, Quote, Task } from '../api/types';
import { mayUse, useSession } from '../session';
import { Button, Problem, formatAmount } from '../ui';
import { words } from '../words';
import { Download } from './Download';
import { Lightbox, Pictures, Thumb } from './Pictures';
import { UseAsInput } from './UseAsInput';
import css from './task.module.css';

const w = words.task.art;

// A custom_id determines the operation, whatever the endpoint. So one endpoint serves all buttons.
const endpoint = '/v1/artgen/generations/variation';

// The kind of a button, without the image and the job: MJ::JOB::upsample::1::… is "upsample".
const kindOf = (button: ArtButton) => button.customId.split('::').find((part) => !['MJ', 'JOB'].includes(part)) ?? button.customId;

export function Art({ task, items }: { task: Task; items: Item[] }) {
  const shown = items.filter((item) => item.url.length > 0);
  const [large, setLarge] = useState<number | null>(null);
  const buttons = usePress(task);
  const [grid, ...crops] = shown;
  if (!grid || crops.length !== 4) {
    return (
      <>
        <Pictures task={task} items={items} />
        <Buttons {...buttons} of={task.buttons ?? []} />
      </>
    );
  }
  const rest = (task.buttons ?? []).filter((b) => !/^[UV][1-4]$/.test(b.label));
  return (
    <>
      <div className={css.artgrid}>
        {crops.map((item, i) => (
          <figure key={i} className={css.media}>
            <Thumb task={task} item={item} label={words.task.openPictureOf(i + 1, 4)} onOpen={() => setLarge(i)} />
            <Buttons {...buttons} of={(task.buttons ?? []).filter((b) => b.label === `U${i + 1}` || b.label === `V${i + 1}`)} />
            <UseAsInput task={task} item={item} />
          </figure>
        ))}
      </div>
      <div className="row">
        <Buttons {...buttons} of={rest} />
        <Button onClick={() => setLarge(4)}>{w.openGrid}</Button>
        <Download item={grid} url={grid.url[0]!} label={w.downloadGrid} />
      </div>
      <Problem error={buttons.error} />
      <Lightbox task={task} items={[...crops, grid]} at={large} onMove={setLarge} />
    </>
  );
}

function usePress(task: Task) {
  const session = useSession();
  const navigate = useNavigate();
  const allowed = mayUse(session, 'generate');
  const keys = useSubmitKey();
  const press = useMutation({
    mutationFn: (button: ArtButton) => {
      const body = { task_id: task.id, custom_id: button.customId };
      return call<{ data: { task_id: string }[] }>('POST', endpoint, { body, headers: { 'Idempotency-Key': keys.of(body) } });
    },
    ...untilAnswered,
    onSettled: (_, error) => keys.settle(error),
    onSuccess: (answer) => navigate({ to: '/tasks/$id', params: { id: answer.data[0]!.task_id } }),
  });
  // All buttons of a kind have the same price, so one quote is enough.
  const kinds = [...new Map((task.buttons ?? []).map((b) => [kindOf(b), b])).entries()];
  const quotes = useQueries({
    queries: kinds.map(([kind, button]) => ({
      queryKey: queryKeys.quote(endpoint, { task_id: task.id, kind }),
      queryFn: () => call<Quote>('POST', '/v1/quote', { body: { endpoint, task_id: task.id, custom_id: button.customId } }),
      staleTime: 600_000,
      enabled: allowed && mayUse(session, 'read'),
    })),
  });
  const prices = new Map(kinds.map(([kind], i) => [kind, quotes[i]?.data]));
  return {
    allowed,
    pending: press.isPending ? press.variables.customId : null,
    error: press.error,
    press: press.mutate,
    price: (button: ArtButton) => {
      const quote = prices.get(kindOf(button));
      return quote && formatAmount(quote.cost, session.currency);
    },
  };
}

function Buttons({ of, allowed, pending, press, price }: { of: ArtButton[] } & ReturnType<typeof usePress>) {
  if (!allowed || of.length === 0) return null;
  return (
    <div className={`row ${css.artbuttons}`}>
      {of.map((button) => (
        <Button key={button.customId} disabled={pending !== null} aria-busy={pending === button.customId} onClick={() => press(button)}>
          <span className="foreign">{w.label(button.label)}</span>
          {price(button) && <span className="soft">{price(button)}</span>}
        </Button>
      ))}
    </div>
  );
}
