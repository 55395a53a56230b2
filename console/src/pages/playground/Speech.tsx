// A generated speech. The response is the audio itself, and this tab keeps the last ones until the session ends.
import { useEffect, useState } from 'react';
import type { Speech as Kept } from '../../requests';
import { Foreign } from '../../task/Foreign';
import { Button } from '../../ui';
import { words } from '../../words';
import css from './playground.module.css';

const w = words.playground.speech;

/** The audio of a kept speech. */
function soundOf({ data }: Kept): Blob {
  return new Blob([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))]);
}

/** Encodes audio as it is kept. */
export async function base64(sound: Blob): Promise<string> {
  const bytes = new Uint8Array(await sound.arrayBuffer());
  let text = '';
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

export function Speech({ speech, onClose }: { speech: Kept; onClose: () => void }) {
  const [url, setUrl] = useState<string>();
  const size = Math.max(1, Math.round((speech.data.length * 0.75) / 1024));
  useEffect(() => {
    const made = URL.createObjectURL(soundOf(speech));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [speech]);
  if (!url) return null;
  return (
    <div className="card stack">
      <div className={css.resulthead}>
        <Foreign text={speech.text} limit={200} />
        <Button variant="quiet" onClick={onClose} aria-label={w.close}>
          ✕
        </Button>
      </div>
      {speech.format === 'pcm' ? <p className="soft">{w.raw}</p> : <audio controls src={url} aria-label={w.player} />}
      <div className="row">
        <a className="button" href={url} download={`speech.${speech.format}`}>
          {w.save(speech.format, size)}
        </a>
      </div>
      <p className="hint">{w.gone}</p>
    </div>
  );
}
