// The secret of a new key, shown once, with a command that uses it.
import type { Key } from '../../api/types';
import { Button, Code } from '../../ui';
import { words } from '../../words';
import css from './keys.module.css';

const w = words.keys;

/** A call that the scopes of the key allow. */
function firstCall(key: Key, secret: string): string {
  const auth = `-H "Authorization: Bearer ${secret}"`;
  const at = window.location.origin;
  if (key.scopes.includes('read')) return `curl ${at}/v1/models ${auth}`;
  if (key.scopes.includes('manage')) return `curl ${at}/v1/keys ${auth}`;
  return `curl ${at}/v1/balance ${auth}`;
}

export function NewSecret({ made, onClose }: { made: Key; onClose: () => void }) {
  const secret = made.key ?? '';
  return (
    <div className={`stack ${css.newsecret}`}>
      <p className="note warn">{w.shownOnce}</p>
      <div>
        <h3>{w.theKey}</h3>
        <Code text={secret} block />
      </div>
      <div>
        <h3>{w.tryIt}</h3>
        <Code text={firstCall(made, secret)} block />
      </div>
      <div className="row">
        <Button variant="main" onClick={onClose}>
          {w.saved}
        </Button>
      </div>
    </div>
  );
}
