// Daily costs as stacked bars. The tables below have the same figures.
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { formatAmount } from '../../ui';
import { words } from '../../words';
import type { Series } from './sums';
import css from './usage.module.css';

const w = words.usage;
const height = 260;
const half = 43_200;

const dates = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });

interface Props {
  label: string;
  days: readonly number[];
  series: readonly Series[];
  nameOf: (name: string) => string;
  currency: string;
  /** Called with the day and series of a clicked bar. */
  onPick: (day: number, name: string | undefined) => void;
}

export function Chart({ label, days, series, nameOf, currency, onPick }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const dark = useDark();
  const pick = useEffectEvent((plot: uPlot) => {
    const { idx, top } = plot.cursor;
    if (idx === null || idx === undefined || top === undefined || days[idx] === undefined) return;
    onPick(days[idx], pickedSeries(plot, idx, plot.posToVal(top, 'y'), series)?.name);
  });

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const plot = new uPlot(optionsOf(element, series.length, currency, setAt), dataOf(days, series), element);
    plot.over.addEventListener('click', () => pick(plot));
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [days, series, currency, dark]);

  const sum = (i: number) => series.reduce((all, one) => all + (one.values[i] ?? 0), 0);
  return (
    <figure className={`card ${css.chart}`}>
      <div ref={box} role="img" aria-label={label} className={css.plot} />
      <p className={`${css.pointed} soft`} aria-hidden="true">
        {at === null || days[at] === undefined
          ? w.pointHint
          : `${dates.format(days[at] * 1000)}: ${[
              formatAmount(sum(at), currency),
              ...(series.length > 1 ? series.filter((one) => one.values[at]).map((one) => `${nameOf(one.name)} ${formatAmount(one.values[at]!, currency)}`) : []),
            ].join(' · ')}`}
      </p>
    </figure>
  );
}

/** Whether the system is in dark mode. A canvas has to be drawn again when that changes. */
function useDark(): boolean {
  const [dark, setDark] = useState(() => window.matchMedia('(prefers-color-scheme: dark)').matches);
  useEffect(() => {
    const query = window.matchMedia('(prefers-color-scheme: dark)');
    const change = () => setDark(query.matches);
    query.addEventListener('change', change);
    return () => query.removeEventListener('change', change);
  }, []);
  return dark;
}

// Bars are drawn over each other, the highest first. Each is as high as its own value and those of all later series
// together.
function dataOf(days: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  const stacked = series.map((_, i) => days.map((_, day) => series.slice(i).reduce((sum, one) => sum + (one.values[day] ?? 0), 0)));
  return [[...days], ...stacked];
}

/** The series whose part of a day's bar contains the amount; undefined above the bar. */
function pickedSeries(plot: uPlot, day: number, amount: number, series: readonly Series[]): Series | undefined {
  // The first bar is the highest, and each further one is lower.
  return series.findLast((_, i) => (plot.data[i + 1]?.[day] ?? 0) >= amount);
}

/** A colour of the stylesheet as a value for the canvas. */
function colourOf(parent: HTMLElement, name = ''): string {
  const probe = document.createElement('span');
  probe.className = name;
  parent.append(probe);
  const colour = getComputedStyle(probe).backgroundColor;
  probe.remove();
  return colour;
}

function optionsOf(element: HTMLElement, series: number, currency: string, point: (at: number | null) => void): uPlot.Options {
  const ink = colourOf(element, css.ink);
  const axis: uPlot.Axis = { stroke: ink, font: '12px system-ui, sans-serif', grid: { stroke: colourOf(element, css.rule), width: 1 }, ticks: { show: false } };
  return {
    width: element.clientWidth,
    height,
    padding: [12, 8, 0, 0],
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), 'Etc/UTC'),
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
    scales: { x: { range: (_, min, max) => [min - half, max + half] }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] } },
    axes: [
      { ...axis, grid: { show: false }, size: 32, space: 64, incrs: [1, 2, 7, 14, 28, 56].map((n) => n * 86_400), values: (_, marks) => marks.map((at) => shortDate.format(at * 1000)) },
      { ...axis, size: 76, values: (_, marks) => marks.map((amount) => formatAmount(amount, currency)) },
    ],
    series: [{}, ...Array.from({ length: series }, (_, i) => ({ fill: colourOf(element, css[`c${i}`]), width: 0, points: { show: false }, paths: uPlot.paths.bars!({ size: [0.72, 44] }) }))],
    hooks: { setCursor: [(plot) => point(plot.cursor.idx ?? null)] },
  };
}

const shortDate = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
