// The request of a task: its prompt, media and settings.
import { useQuery } from '@tanstack/react-query';
import type { Task } from '../api/types';
import { Facts } from '../ui';
import { words } from '../words';
import { taskFileOf } from './files';
import { Foreign } from './Foreign';
import { addressesIn, fieldTitle, promptOf, requestQuery, settingsOf } from './request';
import { Snippets } from './Snippets';
import { TaskThumb } from './TaskThumb';
import css from './task.module.css';

const w = words.task.page;

export function Asked({ task }: { task: Task }) {
  const { data: request } = useQuery(requestQuery(task.id));
  if (request === undefined) return null;
  const prompt = request && promptOf(request.body);
  return (
    <section className={`card stack ${css.asked}`} aria-labelledby="asked">
      <h2 id="asked">{w.request}</h2>
      {request === null && <p className="soft">{words.task.requestErased}</p>}
      {prompt && <Foreign text={prompt.text} limit={400} />}
      {request && <Facts rows={settingsOf(request.body).map(([name, value]) => [fieldTitle(name), <Setting key={name} value={value} />])} />}
      {request?.endpoint && (
        <div className="row">
          <Snippets endpoint={request.endpoint} body={request.body} />
        </div>
      )}
    </section>
  );
}

function Setting({ value }: { value: unknown }) {
  const addresses = addressesIn(value);
  if (addresses.length > 0)
    return (
      <span className={css.askedmedia}>
        {addresses.map((address, i) => (
          <Medium key={i} address={address} />
        ))}
      </span>
    );
  if (typeof value === 'boolean') return <span>{value ? w.yes : w.no}</span>;
  if (typeof value === 'object') return <Foreign text={JSON.stringify(value, null, 1)} limit={200} />;
  return <Foreign text={String(value)} limit={200} />;
}

// The content policy lets the page show files of its own origin and of tasks. For other files it shows the host of the
// URL.
function Medium({ address }: { address: string }) {
  const file = taskFileOf(address, window.location.origin);
  if (file) return <TaskThumb file={file} alt={address} />;
  return (
    <a href={address} target="_blank" rel="noreferrer" className="foreign">
      {URL.canParse(address) ? new URL(address).hostname : address.slice(0, 40)}
    </a>
  );
}
