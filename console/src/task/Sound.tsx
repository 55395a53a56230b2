// An audio player, with a waveform if the bucket lets this page read the file.
import { useEffect, useRef, useState } from 'react';
import { words } from '../words';
import { useLink } from './links';
import { readFile } from './readFile';
import css from './task.module.css';

const w = words.task;
const bars = 160;
const largest = 30e6; // bytes: the decoded audio takes ten times as much memory

export function Sound({ taskId, url, until, title, bytes }: { taskId: string; url: string; until: number; title: string; bytes?: number | undefined }) {
  const { src, onError, broken } = useLink(taskId, url, until);
  const player = useRef<HTMLAudioElement>(null);
  const peaks = usePeaks(bytes !== undefined && bytes > largest ? null : src);
  if (broken) return <p className="note warn">{w.broken}</p>;
  return (
    <div className={css.sound}>
      {peaks && <Waveform peaks={peaks} player={player} />}
      <audio ref={player} controls preload="metadata" src={src} onError={onError} aria-label={w.sound(title)} />
    </div>
  );
}

function usePeaks(src: string | null): number[] | null {
  const [peaks, setPeaks] = useState<number[] | null>(null);
  useEffect(() => {
    if (!src) return;
    const abort = new AbortController();
    void (async () => {
      try {
        const file = await readFile(src, abort.signal);
        if (!file) return;
        const sound = await new OfflineAudioContext(1, 1, 44_100).decodeAudioData(await file.arrayBuffer());
        if (!abort.signal.aborted) setPeaks(peaksOf(sound.getChannelData(0)));
      } catch {
        // Without a waveform: this browser cannot decode the file. The player reports that.
      }
    })();
    return () => abort.abort();
  }, [src]);
  return peaks;
}

function peaksOf(samples: Float32Array): number[] {
  const step = Math.max(1, Math.floor(samples.length / bars));
  const peaks: number[] = [];
  for (let bar = 0; bar < bars; bar++) {
    let peak = 0;
    for (let i = bar * step; i < Math.min((bar + 1) * step, samples.length); i += 8) peak = Math.max(peak, Math.abs(samples[i]!));
    peaks.push(peak);
  }
  const loudest = Math.max(...peaks, 0.01);
  return peaks.map((p) => p / loudest);
}

/** The waveform shows the position of the player, and a click seeks. Keyboard users have the player's own slider. */
function Waveform({ peaks, player }: { peaks: number[]; player: React.RefObject<HTMLAudioElement | null> }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const sound = player.current;
    const c = canvas.current;
    if (!sound || !c) return;
    const draw = () => {
      const scale = window.devicePixelRatio || 1;
      c.width = c.clientWidth * scale;
      c.height = c.clientHeight * scale;
      const pen = c.getContext('2d');
      if (!pen) return;
      const style = getComputedStyle(c);
      const played = sound.duration ? (sound.currentTime / sound.duration) * peaks.length : 0;
      const width = c.width / peaks.length;
      peaks.forEach((peak, i) => {
        const height = Math.max(2 * scale, peak * c.height);
        pen.fillStyle = i < played ? style.color : style.borderTopColor;
        pen.fillRect(i * width, (c.height - height) / 2, Math.max(1, width * 0.65), height);
      });
    };
    draw();
    const dark = window.matchMedia('(prefers-color-scheme: dark)');
    const size = new ResizeObserver(draw);
    size.observe(c);
    sound.addEventListener('timeupdate', draw);
    dark.addEventListener('change', draw);
    return () => {
      size.disconnect();
      sound.removeEventListener('timeupdate', draw);
      dark.removeEventListener('change', draw);
    };
  }, [peaks, player]);
  return (
    <canvas
      ref={canvas}
      className={css.waveform}
      aria-hidden="true"
      onClick={(e) => {
        const box = e.currentTarget.getBoundingClientRect();
        const sound = player.current;
        if (sound?.duration) sound.currentTime = ((e.clientX - box.left) / box.width) * sound.duration;
      }}
    />
  );
}
