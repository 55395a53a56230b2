// The request as code, to copy.
import { useState } from 'react';
import { Button, Code, Dialog } from '../../ui';
import { words } from '../../words';
import type { Values } from './schema';
import { languages, snippet, type Language } from './snippets';

const w = words.playground.code;

export function Snippets({ endpoint, body, file }: { endpoint: string; body: Values; file: string | undefined }) {
  const [open, setOpen] = useState(false);
  const [language, setLanguage] = useState<Language>('curl');
  return (
    <>
      <Button onClick={() => setOpen(true)}>{w.open}</Button>
      <Dialog open={open} title={w.title} onClose={() => setOpen(false)}>
        <div className="stack pg-code">
          <div className="pg-segments" role="radiogroup" aria-label={w.language}>
            {languages.map((l) => (
              <label key={l} className="pg-segment">
                <input type="radio" name="language" checked={l === language} onChange={() => setLanguage(l)} />
                <span>{l}</span>
              </label>
            ))}
          </div>
          <p className="hint">{w.key}</p>
          <Code block text={snippet(language, { base: window.location.origin, endpoint, body, file })} />
        </div>
      </Dialog>
    </>
  );
}
