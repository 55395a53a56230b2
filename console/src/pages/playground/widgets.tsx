// The inputs of the form, one for each kind of field.
import type { ComponentType } from 'react';
import { Button } from '../../ui';
import { words } from '../../words';
import { useGroup, useInput } from './field';
import { FileInput } from './media';
import { optionsOf, type InputKind, type Schema } from './schema';
import { Clip, ClipIndex, SourceTask } from './source';
import css from './playground.module.css';

const w = words.playground.form;

export interface InputProps {
  id: string;
  name: string;
  schema: Schema;
  value: string | number | boolean | undefined;
  required: boolean;
  onChange: (value: unknown) => void;
}

const exampleOf = (schema: Schema) => {
  const example = Array.isArray(schema.examples) ? schema.examples[0] : undefined;
  return typeof example === 'string' || typeof example === 'number' ? String(example) : undefined;
};
const placeholderOf = (schema: Schema) => (schema.default !== undefined ? String(schema.default) : exampleOf(schema));
const withUnit = (schema: Schema, value: string | number) => (schema['x-unit'] === 'seconds' && value !== 0 ? w.seconds(value) : String(value));

function LongText({ id, schema, value = '', onChange }: InputProps) {
  const text = String(value);
  const max = schema.maxLength;
  const length = [...text].length; // code points, as the API counts
  const main = /^root_(prompt|input|lyrics|sound_prompt|gpt_description)$/.test(id);
  const examples = main && text === '' && Array.isArray(schema.examples) ? (schema.examples as string[]) : [];
  return (
    <div className={css.long}>
      <textarea {...useInput(id)} data-main={main || undefined} value={text} placeholder={exampleOf(schema)} onChange={(e) => onChange(e.target.value || undefined)} />
      {max !== undefined && (
        <span className={length > max ? `${css.count} fault` : css.count} aria-live={length > max ? 'polite' : 'off'}>
          {w.count(length, max)}
        </span>
      )}
      {examples.length > 0 && (
        <div className={css.examples} role="group" aria-label={w.examplesOf(String(schema.title))}>
          {examples.map((example) => (
            <button type="button" key={example} onClick={() => onChange(example)}>
              {example}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function Line({ id, schema, value = '', onChange }: InputProps) {
  return <input {...useInput(id)} type={schema.format === 'uri' ? 'url' : 'text'} value={String(value)} placeholder={placeholderOf(schema)} onChange={(e) => onChange(e.target.value || undefined)} />;
}

function NumberInput({ id, schema, value, onChange }: InputProps) {
  return (
    <input
      {...useInput(id)}
      type="number"
      inputMode="decimal"
      step={schema.type === 'integer' ? 1 : 'any'}
      min={schema.minimum}
      max={schema.maximum}
      value={value === undefined ? '' : String(value)}
      placeholder={placeholderOf(schema)}
      onChange={(e) => onChange(e.target.value === '' ? undefined : e.target.valueAsNumber)}
    />
  );
}

function Seed(props: InputProps) {
  return (
    <div className={css.seed}>
      <NumberInput {...props} />
      <Button onClick={() => props.onChange(randomSeed(props.schema))} aria-label={w.dice} title={w.dice}>
        <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
          <rect x="2" y="2" width="16" height="16" rx="4" className={css.die} />
          <circle cx="7" cy="7" r="1.6" />
          <circle cx="13" cy="7" r="1.6" />
          <circle cx="10" cy="10" r="1.6" />
          <circle cx="7" cy="13" r="1.6" />
          <circle cx="13" cy="13" r="1.6" />
        </svg>
      </Button>
    </div>
  );
}

/** A random seed that is short enough to read aloud. */
export function randomSeed(schema: Schema): number {
  return Math.floor(Math.random() * Math.min(schema.maximum ?? 999_999, 999_999)) + 1;
}

function Slider({ id, schema, value, onChange }: InputProps) {
  const shown = Number(value ?? schema.default);
  return (
    <div className={css.slider}>
      <input {...useInput(id)} type="range" min={schema.minimum} max={schema.maximum} step={schema.type === 'integer' ? 1 : 0.05} value={shown} onChange={(e) => onChange(e.target.valueAsNumber)} />
      <output htmlFor={id}>{withUnit(schema, shown)}</output>
    </div>
  );
}

function Check({ id, schema, value, onChange }: InputProps) {
  return <input {...useInput(id)} type="checkbox" checked={Boolean(value ?? schema.default ?? false)} onChange={(e) => onChange(e.target.checked)} />;
}

function SelectInput({ id, schema, value, required, onChange }: InputProps) {
  const options = optionsOf(schema) ?? [];
  const shown = value ?? schema.default ?? '';
  return (
    <select {...useInput(id)} value={String(shown)} onChange={(e) => onChange(options.find((o) => String(o) === e.target.value))}>
      {schema.default === undefined && <option value="">{required ? w.choose : w.none}</option>}
      {options.map((o) => (
        <option key={o} value={String(o)}>
          {withUnit(schema, o)}
        </option>
      ))}
    </select>
  );
}

/** A few values side by side. If the field is optional and has no default, the choice can be cleared. */
function Segments({ id, schema, value, required, onChange, drawn = false }: InputProps & { drawn?: boolean }) {
  const chosen = value ?? schema.default;
  const options = optionsOf(schema) ?? [];
  return (
    <div {...useGroup(id)} role="radiogroup" className={drawn ? css.ratios : 'segments'}>
      {options.map((o) => (
        <label key={o} className="segment">
          <input type="radio" name={id} id={o === options[0] ? id : undefined} checked={chosen === o} onChange={() => onChange(o)} />
          <span>
            {drawn && <Ratio ratio={String(o)} />}
            <span>{withUnit(schema, o)}</span>
          </span>
        </label>
      ))}
      {value !== undefined && !required && schema.default === undefined && (
        <Button variant="quiet" onClick={() => onChange(undefined)}>
          {w.clear}
        </Button>
      )}
    </div>
  );
}

function Ratio({ ratio }: { ratio: string }) {
  const [width = 1, height = 1] = ratio.split(':').map(Number);
  const size = 20 / Math.max(width, height);
  return (
    <svg className={css.ratio} viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
      {ratio === 'auto' ? <path d="M5 10V5h5M19 14v5h-5" /> : <rect x={12 - (width * size) / 2} y={12 - (height * size) / 2} width={width * size} height={height * size} rx="1.5" />}
    </svg>
  );
}

const Ratios = (props: InputProps) => <Segments {...props} drawn />;
const Medium = (props: InputProps) => <FileInput {...props} />;

export const inputs: Record<InputKind, ComponentType<InputProps>> = {
  long: LongText,
  line: Line,
  ratio: Ratios,
  segments: Segments,
  select: SelectInput,
  check: Check,
  slider: Slider,
  number: NumberInput,
  seed: Seed,
  image: Medium,
  link: Medium,
  task: SourceTask,
  clip: Clip,
  index: ClipIndex,
};
