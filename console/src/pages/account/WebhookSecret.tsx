// The secret that signs callbacks. It is read only on demand, and forgotten when the page is left.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiError, call } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import type { WebhookSecret as Secret } from '../../api/types';
import { Button, Check, Code, Dialog, Loading, Problem, Time, useNow } from '../../ui';
import { words } from '../../words';
import css from './account.module.css';

const w = words.account;
const path = '/v1/webhooks/secret';

export function WebhookSecret() {
  const [shown, setShown] = useState(false);
  const [rotating, setRotating] = useState(false);
  const client = useQueryClient();
  const secret = useQuery({ queryKey: queryKeys.webhookSecret, queryFn: ({ signal }) => call<Secret>('GET', path, { signal }), enabled: shown || rotating, gcTime: 0 });
  const now = useNow(30_000);
  const previous = secret.data?.previous_expires_at ?? 0;
  const overlaps = previous > now;
  return (
    <section className="card">
      <h2>{w.secret}</h2>
      <p className="soft">{w.secretHint}</p>
      <div className={css.secret}>
        {shown && secret.data ? <Code text={secret.data.secret} /> : <span className="mono soft">{w.hidden}</span>}
        <Button variant="quiet" aria-expanded={shown} aria-label={shown ? w.hideSecret : w.showSecret} onClick={() => setShown(!shown)}>
          {shown ? w.hide : w.show}
        </Button>
      </div>
      {shown && secret.isPending && <Loading />}
      {shown && !secret.data && <Problem error={secret.error} />}
      {shown && overlaps && (
        <p className="note warn">
          {w.previous} <Time unix={previous} />
        </p>
      )}
      <p className={css.cardend}>
        <Button onClick={() => setRotating(true)}>{w.rotate}</Button>
      </p>
      <Dialog open={rotating} title={w.rotateTitle} onClose={() => setRotating(false)}>
        <Rotation
          overlaps={overlaps}
          onDone={(made) => {
            client.setQueryData(queryKeys.webhookSecret, made);
            setShown(true);
            setRotating(false);
          }}
          onCancel={() => setRotating(false)}
        />
      </Dialog>
    </section>
  );
}

function Rotation({ overlaps, onDone, onCancel }: { overlaps: boolean; onDone: (made: Secret) => void; onCancel: () => void }) {
  const [force, setForce] = useState(false);
  const rotate = useMutation({ mutationFn: () => call<Secret>('POST', path, { query: { force: force || undefined } }), onSuccess: onDone });
  // The secret may have been rotated elsewhere meanwhile.
  const needsForce = overlaps || (rotate.error instanceof ApiError && rotate.error.status === 409);
  return (
    <form
      className="stack"
      onSubmit={(e) => {
        e.preventDefault();
        rotate.mutate();
      }}
    >
      <p>{w.rotateWhat}</p>
      {needsForce && (
        <>
          <p className="note warn">{w.forceWhy}</p>
          <Check label={w.force} checked={force} onChange={(e) => setForce(e.target.checked)} />
        </>
      )}
      <Problem error={rotate.error} />
      <div className="row">
        <Button type="submit" variant="main" disabled={rotate.isPending || (needsForce && !force)}>
          {rotate.isPending ? words.keys.saving : w.rotateNow}
        </Button>
        <Button onClick={onCancel}>{words.ui.cancel}</Button>
      </div>
    </form>
  );
}
