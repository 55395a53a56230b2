// A dialog that shows a request as code.
import { useState } from 'react';
import { Button, Code, Dialog } from '../ui';
import { words } from '../words';
import { languagesFor, snippet, type Language } from './snippets';
import css from './task.module.css';

const w = words.playground.code;

export function Snippets({ endpoint, body }: { endpoint: string; body: Record<string, unknown> }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>{w.open}</Button>
      <Dialog open={open} title={w.title} onClose={() => setOpen(false)} className={css.codedialog}>
        <Languages endpoint={endpoint} body={body} />
      </Dialog>
    </>
  );
}

function Languages({ endpoint, body }: { endpoint: string; body: Record<string, unknown> }) {
  const [language, setLanguage] = useState<Language>('curl');
  return (
    <div className={`stack ${css.program}`}>
      <div className="segments" role="radiogroup" aria-label={w.language}>
        {languagesFor(endpoint).map((l) => (
          <label key={l} className="segment">
            <input type="radio" name="language" checked={l === language} onChange={() => setLanguage(l)} />
            <span>{l}</span>
          </label>
        ))}
      </div>
      <p className="hint">{w.does}</p>
      <Code block text={snippet(language, { base: window.location.origin, endpoint, body })} />
    </div>
  );
}
