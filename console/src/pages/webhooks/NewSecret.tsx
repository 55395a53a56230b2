// The secret of an endpoint, shown once.
import { Button, Code } from '../../ui';
import { words } from '../../words';
import keysCSS from '../keys/keys.module.css';

const w = words.webhooks;

export function NewSecret({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <div className={`stack ${keysCSS.newsecret}`}>
      <p className="note warn">{words.keys.shownOnce}</p>
      <p>{w.secretHint}</p>
      <Code text={secret} block />
      <div className="row">
        <Button variant="main" onClick={onClose}>
          {words.keys.saved}
        </Button>
      </div>
    </div>
  );
}
