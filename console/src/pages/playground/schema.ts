// Reads a served JSON Schema for the form. The code knows no model: it tells fields apart by their type, their limits
// and the annotations of the catalog (x-group, x-media, x-unit), which docs/adding-a-model.md describes.
import type { JSONSchema7 } from 'json-schema';
import type { Media } from '../../task/files';

/** A JSON Schema of draft 2020-12 with our annotations. Only the older keywords have types. */
export type Schema = JSONSchema7 & { [keyword: string]: any };
export type Values = Record<string, unknown>;

const components = '#/components/schemas/';

/** A schema of the OpenAPI document, made self-contained: what it refers to is in $defs. */
export function withDefinitions(schema: Schema, all: Record<string, Schema>): Schema {
  const $defs: Record<string, Schema> = {};
  const copy = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(copy);
    if (typeof node !== 'object' || node === null) return node;
    return Object.fromEntries(
      Object.entries(node).map(([key, value]) => {
        if (key !== '$ref' || typeof value !== 'string' || !value.startsWith(components)) return [key, copy(value)];
        const name = value.slice(components.length);
        if (!(name in $defs)) {
          $defs[name] = {};
          $defs[name] = copy(all[name]) as Schema;
        }
        return [key, `#/$defs/${name}`];
      }),
    );
  };
  const named = schema.$ref?.startsWith(components) ? all[schema.$ref.slice(components.length)] : schema;
  if (named?.oneOf) return named; // the requests of several models: the caller reads each on its own
  return { ...(copy(named) as Schema), $defs };
}

const asSchema = (value: unknown): Schema => (typeof value === 'object' && value !== null ? (value as Schema) : {});
const mainGroups = ['frames', 'references', 'output', 'source', 'section', 'mode', 'shots'];

/** The fields that are always shown. All others are under "More settings". */
export function mainFields(schema: Schema): Set<string> {
  const main = new Set(schema.required ?? []);
  const choices = [schema, ...(schema.allOf ?? [])].flatMap((s) => asSchema(s).anyOf ?? []);
  for (const choice of choices) asSchema(choice).required?.forEach((name) => main.add(name));
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const p = asSchema(property);
    if (mainGroups.includes(p['x-group'] as string) || isLongText(name, p)) main.add(name);
  }
  for (const name of folded) main.delete(name);
  return main;
}
const folded = ['negative_prompt', 'instructions', 'messages', 'image_with_roles', 'watermark', 'custom_id', 'webhook', 'metadata'];

const longTexts = /(^|_)(prompt|lyrics|description|input|instructions?)$/;
export const isLongText = (name: string, schema: Schema) => schema.type !== 'object' && !schema.enum && schema.format === undefined && longTexts.test(name);

const ratio = /^[1-9]\d?:[1-9]\d?$/;
const commonRatios = ['1:1', '16:9', '9:16', '4:3', '3:4', '3:2', '2:3', '21:9'];

/** The values to choose from: those of the schema, or the examples if the default is one of them, or the common ratios
 * if any ratio is allowed. */
export function optionsOf(schema: Schema): (string | number)[] | undefined {
  if (schema.enum) return schema.enum as (string | number)[];
  const examples = (Array.isArray(schema.examples) ? schema.examples : []) as (string | number)[];
  if (schema.type === 'string' && examples.length > 1 && examples.includes(schema.default as string)) return examples;
  if (schema.type === 'string' && examples.length > 1 && examples.every((e) => ratio.test(String(e)))) return commonRatios;
  const { minimum, maximum } = schema;
  if (schema.type === 'integer' && minimum !== undefined && maximum !== undefined && maximum - minimum < 5) return Array.from({ length: maximum - minimum + 1 }, (_, i) => minimum + i);
  return undefined;
}

/** The inputs for a single value. */
export type InputKind = 'long' | 'line' | 'ratio' | 'segments' | 'select' | 'check' | 'slider' | 'number' | 'seed' | 'image' | 'link' | 'task' | 'clip' | 'index';
export type Kind = InputKind | 'images' | 'links' | 'items' | 'object';

/** The kind of media that a field takes. */
export const mediaKindOf = (schema: Schema | undefined) => (schema?.['x-media'] as { kind?: Media } | undefined)?.kind;

/** The kind of input for a field. The schema must be resolved, without references. */
export function kindOf(name: string, schema: Schema, items?: Schema): Kind {
  if (schema.type === 'array') return items?.type === 'string' ? (mediaKindOf(schema) === 'image' ? 'images' : 'links') : 'items';
  if (schema.type === 'object' || schema.properties) return 'object';
  if (schema.type === 'boolean') return 'check';
  if (name === 'task_id') return 'task';
  if (name === 'clip_id') return 'clip';
  if (name === 'audio_index') return 'index';
  const options = optionsOf(schema);
  if (options) {
    if (options.every((o) => o === 'auto' || ratio.test(String(o)))) return 'ratio';
    return options.length <= 5 && options.join('').length <= 40 ? 'segments' : 'select';
  }
  if (name === 'seed') return 'seed';
  if (schema.type === 'integer' || schema.type === 'number') {
    const { minimum, maximum } = schema;
    return schema.default !== undefined && minimum !== undefined && maximum !== undefined && maximum - minimum <= 60 ? 'slider' : 'number';
  }
  if (mediaKindOf(schema)) return mediaKindOf(schema) === 'image' ? 'image' : 'link';
  return isLongText(name, schema) ? 'long' : 'line';
}

export const isGroup = (kind: Kind) => kind === 'ratio' || kind === 'segments' || kind === 'images' || kind === 'links' || kind === 'items';

/** The value without empty parts; undefined if nothing is left. */
export function clean(value: unknown): unknown {
  if (value === null || value === '') return undefined;
  if (Array.isArray(value)) {
    const items = value.map((item) => clean(item) ?? (typeof item === 'object' ? {} : undefined)).filter((item) => item !== undefined);
    return items.length ? items : undefined;
  }
  if (typeof value !== 'object') return value;
  const entries = Object.entries(value as Values)
    .map(([key, v]) => [key, clean(v)] as const)
    .filter(([, v]) => v !== undefined);
  return entries.length ? Object.fromEntries(entries) : undefined;
}

/** The body with an example for each missing field, so that it can be priced before it is complete. Undefined if a
 * missing field names a task, is a number or belongs to an item: no example can stand for these. */
export function withExamples(schema: Schema, body: Values, missing: readonly string[]): Values | undefined {
  const filled = { ...body };
  for (const name of missing) {
    const example = asSchema(schema.properties?.[name]).examples;
    if (!Array.isArray(example) || example.length === 0 || typeof example[0] === 'number' || sources.includes(name)) return undefined;
    filled[name] = example[0];
  }
  return filled;
}
const sources = ['task_id', 'clip_id'];

/** The initial values of a form. A switch between two kinds of request that has no default starts with the simpler kind.
 * A required voice starts with the example. */
export function initialValues(schema: Schema): Values {
  const values: Values = {};
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const p = asSchema(property);
    if (name === 'voice' && p.enum && schema.required?.includes(name)) values[name] = (Array.isArray(p.examples) && p.examples[0]) || p.enum[0];
    if (p.type === 'boolean' && p['x-group'] === 'mode' && p.default === undefined) values[name] = false;
  }
  return values;
}

/** Returns the texts and images of a request to another model that this model takes, too. */
export function carriedOver(schema: Schema, body: Values): Values {
  const kept = ['prompt', 'negative_prompt', 'image_urls', 'first_frame_image'];
  return Object.fromEntries(Object.entries(body).filter(([name]) => kept.includes(name) && schema.properties && name in schema.properties));
}

// A place for a file of a task: a field, or a property of a list's items.
interface Place {
  field: string;
  list: boolean;
  /** How many items the list may have. */
  most: number;
  property: string | undefined;
}

/** The first place in a request for a file of a kind. Required fields come before others, and fields that hold the file
 * itself before fields whose items hold it. */
function placeOf(schema: Schema, media: string): Place | undefined {
  const places: Place[] = [];
  for (const [field, property] of Object.entries(schema.properties ?? {})) {
    const p = asSchema(property);
    const items = asSchema(Array.isArray(p.prefixItems) ? p.prefixItems[0] : p.items);
    const place = { field, list: p.type === 'array', most: p.maxItems ?? (Array.isArray(p.prefixItems) ? p.prefixItems.length : 100) };
    const within = Object.entries(items.properties ?? {}).find(([, q]) => mediaKindOf(asSchema(q)) === media);
    if (mediaKindOf(p) === media) places.push({ ...place, property: undefined });
    else if (within && !folded.includes(field)) places.push({ ...place, property: within[0] });
  }
  const order = (p: Place) => (p.property ? 2 : 0) + (schema.required?.includes(p.field) ? 0 : 1);
  return places.sort((a, b) => order(a) - order(b))[0];
}

/** Whether a request can use a file of the kind. */
export const takesMedia = (schema: Schema, media: string) => placeOf(schema, media) !== undefined;

/** The values with a file added in the first place for its kind. A full list loses its last item. */
export function withFile(schema: Schema, values: Values, media: string, address: string): Values {
  const place = placeOf(schema, media);
  if (!place) return values;
  const { field, list, most, property } = place;
  if (!list) return { ...values, [field]: address };
  const items = (values[field] ?? []) as unknown[];
  if (items.some((item) => (property ? (item as Values | null)?.[property] : item) === address)) return values;
  return { ...values, [field]: [...items.slice(0, most - 1), property ? { [property]: address } : address] };
}
