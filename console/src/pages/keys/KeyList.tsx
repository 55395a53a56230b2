// The keys of an account with all actions on them, for the account itself and for operators.
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { Key, List } from '../../api/types';
import { renewSession, useMay } from '../../session';
import { Button, Dialog, Empty, Loading, Problem } from '../../ui';
import { words } from '../../words';
import { Revoke, Rotate } from './Dialogs';
import { KeyForm } from './KeyForm';
import { KeyItem } from './KeyItem';
import { NewSecret } from './NewSecret';
import type { Body } from './settings';
import css from './keys.module.css';

const w = words.keys;

interface Props {
  /** The path of the list: /v1/keys, or that of the admin API. */
  path: string;
  /** The path that creates keys, if it is another one. */
  createAt?: string;
  /** The account, for operators. */
  account?: string;
  /** The key of this session; null for operators. */
  own: Key | null;
  models?: readonly string[] | undefined;
  currency: string;
}

type Open = { what: 'create' } | { what: 'change' | 'rotate' | 'revoke'; key: Key } | { what: 'made'; key: Key };

const titles = { create: w.create, change: w.changeTitle, rotate: w.rotateTitle, revoke: w.revokeTitle, made: w.madeTitle };

export function KeyList({ path, createAt = path, account, own, models, currency }: Props) {
  const client = useQueryClient();
  const [open, setOpen] = useState<Open | null>(null);
  const may = useMay('admin');
  const list = useInfiniteQuery({
    queryKey: queryKeys.keyList(path, account),
    queryFn: ({ pageParam, signal }) => call<List<Key>>('GET', path, { query: { account, limit: 100, after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => (page.has_more ? page.data.at(-1)?.id : undefined),
  });
  const head = useRef<HTMLDivElement>(null);
  const done = () => client.invalidateQueries({ queryKey: queryKeys.keys });

  const create = useMutation({
    mutationFn: (body: Body) => call<Key>('POST', createAt, { body }),
    onSuccess: (key) => (setOpen({ what: 'made', key }), done()),
  });
  const change = useMutation({
    mutationFn: ({ key, body }: { key: Key; body: Body }) => call<Key>('PATCH', `${path}/${key.id}`, { body }),
    onSuccess: () => (setOpen(null), done()),
  });
  const rotate = useMutation({
    mutationFn: async ({ key, grace }: { key: Key; grace: number }) => {
      const made = await call<Key>('POST', `${path}/${key.id}/rotate`, { body: { grace_seconds: grace } });
      // The rotation has ended this session. It continues with the new key, whose secret is shown next.
      if (key.id === own?.id && made.key) await renewSession(made.key).catch(() => {});
      return made;
    },
    onSuccess: (key) => (setOpen({ what: 'made', key }), done()),
  });
  const revoke = useMutation({
    mutationFn: (key: Key) => call<void>('DELETE', `${path}/${key.id}`),
    onSuccess: async () => {
      setOpen(null);
      await done();
      // The key is gone with the button that had the focus, so the focus moves to the head of the list.
      requestAnimationFrame(() => head.current?.querySelector('button')?.focus());
    },
  });
  const begin = (next: Open) => {
    for (const one of [create, change, rotate, revoke]) one.reset();
    setOpen(next);
  };
  const close = () => setOpen(null);

  const keys = list.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <div className="stack">
      <div className="row" ref={head}>
        {may && (
          <Button variant="main" onClick={() => begin({ what: 'create' })}>
            {w.create}
          </Button>
        )}
      </div>
      <Problem error={list.error} />
      {list.isPending && <Loading />}
      {list.data && keys.length === 0 && <Empty title={w.empty}>{w.emptyHint}</Empty>}
      {keys.length > 0 && (
        <ul className={css.keylist}>
          {keys.map((key) => (
            <KeyItem key={key.id} item={key} own={key.id === own?.id} currency={currency} act={may ? (what) => begin({ what, key }) : null} />
          ))}
        </ul>
      )}
      {list.hasNextPage && (
        <div className="row">
          <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {words.shell.more}
          </Button>
        </div>
      )}
      <Dialog open={open !== null} title={open ? <DialogTitle open={open} /> : ''} onClose={close} stays={open?.what === 'made'}>
        {open?.what === 'create' && (
          <KeyForm maker={own} models={models} currency={currency} busy={create.isPending} error={create.error} onSubmit={create.mutate} onCancel={close} />
        )}
        {open?.what === 'change' && (
          <KeyForm
            change={open.key}
            maker={own}
            models={models}
            currency={currency}
            busy={change.isPending}
            error={change.error}
            onSubmit={(body) => change.mutate({ key: open.key, body })}
            onCancel={close}
          />
        )}
        {open?.what === 'rotate' && (
          <Rotate of={open.key} own={open.key.id === own?.id} busy={rotate.isPending} error={rotate.error} onSubmit={(grace) => rotate.mutate({ key: open.key, grace })} onCancel={close} />
        )}
        {open?.what === 'revoke' && (
          <Revoke of={open.key} own={open.key.id === own?.id} busy={revoke.isPending} error={revoke.error} onSubmit={() => revoke.mutate(open.key)} onCancel={close} />
        )}
        {open?.what === 'made' && <NewSecret made={open.key} onClose={close} />}
      </Dialog>
    </div>
  );
}

function DialogTitle({ open }: { open: Open }) {
  return (
    <>
      {titles[open.what]}
      {'key' in open && (
        <>
          {' '}
          <span className="foreign soft">{open.key.name}</span>
        </>
      )}
    </>
  );
}
