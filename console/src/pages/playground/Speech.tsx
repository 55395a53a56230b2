// A spoken text: it comes in the answer itself, and stays in this page only.
import { useEffect, useState } from 'react';
import { words } from '../../words';

const w = words.playground.speech;

export interface Spoken {
  blob: Blob;
  format: string;
}

export function Speech({ spoken }: { spoken: Spoken }) {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(spoken.blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [spoken]);
  if (!url) return null;
  return (
    <div className="stack">
      {spoken.format === 'pcm' ? <p className="soft">{w.raw}</p> : <audio controls src={url} aria-label={w.player} />}
      <div className="row">
        <a className="button" href={url} download={`speech.${spoken.format}`}>
          {w.save(spoken.format, Math.max(1, Math.round(spoken.blob.size / 1024)))}
        </a>
      </div>
      <p className="hint">{w.gone}</p>
    </div>
  );
}
