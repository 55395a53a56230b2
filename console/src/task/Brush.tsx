// Paints a mask over an image, by pointer or keyboard.
import { useEffect, useImperativeHandle, useRef, useState, type Ref } from 'react';
import { Button } from '../ui';
import { words } from '../words';
import css from './task.module.css';

const w = words.task.brush;

interface Point {
  x: number;
  y: number;
}
type Step = { kind: 'stroke'; erase: boolean; size: number; points: Point[] } | { kind: 'invert' } | { kind: 'clear' };

export interface BrushHandle {
  /** The mask as a PNG, white where it is painted; null if nothing is painted. */
  mask: () => Promise<Blob | null>;
}

// The canvas has the size of the image, and is opaque where it is painted. Undo removes the last step and draws all
// others again.
export function Brush({ src, ref, onError }: { src: string; ref: Ref<BrushHandle>; onError?: () => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [steps, setSteps] = useState<Step[]>([]);
  const [share, setShare] = useState(8); // the size of the brush, in percent of the image's shorter side
  const [erase, setErase] = useState(false);
  const [size, setSize] = useState<{ width: number; height: number } | null>(null);
  const [cursor, setCursor] = useState<Point | null>(null); // the position of the keyboard's brush, in pixels of the image
  const brush = size ? Math.max(2, Math.round((Math.min(size.width, size.height) * share) / 100)) : 2;

  useEffect(() => {
    const c = canvas.current;
    if (c && size) draw(c, steps);
  }, [steps, size]);
  useImperativeHandle(ref, () => ({ mask: async () => (canvas.current ? maskOf(canvas.current) : null) }), []);

  const begin = (p: Point) => setSteps((s) => [...s, { kind: 'stroke', erase, size: brush, points: [p] }]);
  const extend = (p: Point) =>
    setSteps((s) => {
      const last = s.at(-1);
      return last?.kind === 'stroke' ? [...s.slice(0, -1), { ...last, points: [...last.points, p] }] : s;
    });
  const at = (e: React.PointerEvent<HTMLCanvasElement>): Point => {
    const box = e.currentTarget.getBoundingClientRect();
    return { x: ((e.clientX - box.left) / box.width) * e.currentTarget.width, y: ((e.clientY - box.top) / box.height) * e.currentTarget.height };
  };
  const onKeyDown = (e: React.KeyboardEvent) => {
    if (!size) return;
    const moves: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const from = cursor ?? { x: size.width / 2, y: size.height / 2 };
    const move = moves[e.key];
    if (move) {
      const to = {
        x: Math.min(size.width, Math.max(0, from.x + (move[0] * brush) / 2)),
        y: Math.min(size.height, Math.max(0, from.y + (move[1] * brush) / 2)),
      };
      setCursor(to);
      if (e.shiftKey) setSteps((s) => [...s, { kind: 'stroke', erase, size: brush, points: [from, to] }]);
    } else if (e.key === ' ' || e.key === 'Enter') begin(from);
    else if (e.key === '+') setShare((n) => Math.min(40, n + 1));
    else if (e.key === '-') setShare((n) => Math.max(1, n - 1));
    else if (e.key === 'z' && (e.ctrlKey || e.metaKey)) setSteps((s) => s.slice(0, -1));
    else return;
    e.preventDefault();
  };

  return (
    <div className={`${css.brush} stack`}>
      <div className="row">
        <fieldset className={css.tools}>
          <legend className="sr">{w.tool}</legend>
          {[false, true].map((erases) => (
            <label key={String(erases)}>
              <input type="radio" name="tool" checked={erase === erases} onChange={() => setErase(erases)} /> <span>{erases ? w.eraser : w.brush}</span>
            </label>
          ))}
        </fieldset>
        <label className="size">
          {w.size} <input type="range" min={1} max={40} value={share} onChange={(e) => setShare(Number(e.target.value))} />
        </label>
        <Button disabled={steps.length === 0} onClick={() => setSteps((s) => s.slice(0, -1))}>{w.undo}</Button>
        <Button disabled={steps.length === 0} onClick={() => setSteps((s) => [...s, { kind: 'clear' }])}>{w.clear}</Button>
        <Button onClick={() => setSteps((s) => [...s, { kind: 'invert' }])}>{w.invert}</Button>
      </div>
      <div className={css.easel}>
        <img src={src} alt={w.picture} onError={onError} onLoad={(e) => setSize({ width: e.currentTarget.naturalWidth, height: e.currentTarget.naturalHeight })} />
        <canvas
          ref={canvas}
          width={size?.width ?? 1}
          height={size?.height ?? 1}
          tabIndex={0}
          role="application"
          aria-label={w.canvas}
          aria-describedby="brush-keys"
          onKeyDown={onKeyDown}
          onFocus={() => size && setCursor((c) => c ?? { x: size.width / 2, y: size.height / 2 })}
          onBlur={() => setCursor(null)}
          onPointerDown={(e) => {
            e.currentTarget.setPointerCapture(e.pointerId);
            begin(at(e));
          }}
          onPointerMove={(e) => e.currentTarget.hasPointerCapture(e.pointerId) && extend(at(e))}
        />
        {cursor && size && (
          <span
            className={css.brushcursor}
            aria-hidden="true"
            style={{ left: `${(cursor.x / size.width) * 100}%`, top: `${(cursor.y / size.height) * 100}%`, width: `${(brush / size.width) * 100}%` }}
          />
        )}
      </div>
      <p className="hint" id="brush-keys">{w.keys}</p>
    </div>
  );
}

function draw(c: HTMLCanvasElement, steps: Step[]): void {
  const pen = c.getContext('2d');
  if (!pen) return;
  pen.clearRect(0, 0, c.width, c.height);
  pen.fillStyle = pen.strokeStyle = '#ff2d8a';
  pen.lineCap = pen.lineJoin = 'round';
  for (const step of steps) {
    if (step.kind === 'clear') pen.clearRect(0, 0, c.width, c.height);
    else if (step.kind === 'invert') {
      pen.globalCompositeOperation = 'source-out';
      pen.fillRect(0, 0, c.width, c.height);
    } else {
      pen.globalCompositeOperation = step.erase ? 'destination-out' : 'source-over';
      pen.lineWidth = step.size;
      pen.beginPath();
      const [first, ...rest] = step.points;
      if (rest.length === 0) {
        // Canvas draws nothing for a line without length, so a single point is a circle.
        pen.arc(first!.x, first!.y, step.size / 2, 0, 2 * Math.PI);
        pen.fill();
      } else {
        pen.moveTo(first!.x, first!.y);
        for (const p of rest) pen.lineTo(p.x, p.y);
        pen.stroke();
      }
    }
    pen.globalCompositeOperation = 'source-over';
  }
}

async function maskOf(painted: HTMLCanvasElement): Promise<Blob | null> {
  const mask = document.createElement('canvas');
  mask.width = painted.width;
  mask.height = painted.height;
  const pen = mask.getContext('2d');
  if (!pen) return null;
  pen.drawImage(painted, 0, 0);
  if (!pen.getImageData(0, 0, mask.width, mask.height).data.some((value, i) => i % 4 === 3 && value > 127)) return null;
  pen.globalCompositeOperation = 'source-in';
  pen.fillStyle = '#fff';
  pen.fillRect(0, 0, mask.width, mask.height);
  pen.globalCompositeOperation = 'destination-over';
  pen.fillStyle = '#000';
  pen.fillRect(0, 0, mask.width, mask.height);
  return new Promise((resolve) => mask.toBlob(resolve, 'image/png'));
}
