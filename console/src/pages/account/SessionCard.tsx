import { useMutation } from '@tanstack/react-query';
import type { Session } from '../../api/types';
import { signOut } from '../../session';
import { Badge, Button, Facts, Problem, Time, formatDuration, useNow } from '../../ui';
import { words } from '../../words';
import css from './account.module.css';

const w = words.account;

export function SessionCard({ session }: { session: Session }) {
  const leave = useMutation({ mutationFn: signOut });
  const now = useNow(30_000);
  const key = session.key;
  return (
    <section className="card">
      <h2>{w.session}</h2>
      <Facts
        rows={[
          key && [
            w.signedInWith,
            <>
              <span className="foreign">{key.name}</span>{' '}
              <span className="mono soft">
                {key.prefix}…{key.last_four}
              </span>
            </>,
          ],
          key && [w.may, <span className="row tight">{key.scopes.map((scope) => <Badge key={scope}>{words.keys.scopeShort[scope]}</Badge>)}</span>],
          [
            w.ends,
            <>
              <Time unix={session.expires_at} /> <span className="soft">{w.endsIn(formatDuration(session.expires_at - now))}</span>
            </>,
          ],
          [w.version, <span className="mono">{session.version}</span>],
        ]}
      />
      <Problem error={leave.error} />
      <p className={css.cardend}>
        <Button disabled={leave.isPending} onClick={() => leave.mutate()}>
          {words.shell.signOut}
        </Button>
      </p>
    </section>
  );
}
