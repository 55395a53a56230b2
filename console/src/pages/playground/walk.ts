// Resolves a schema for the current values of a form: which fields apply, and which body they make.
import { clean, type Schema, type Values } from './schema';
import { holds } from './validate';

/** The names of fields and the indexes of items that lead to a value. */
export type Path = readonly (string | number)[];

/** The schema that applies to a value: references are replaced, the branches whose conditions hold are merged in, and a
 * list with described first items becomes a short list. */
export function resolve(schema: Schema, root: Schema, value: unknown): Schema {
  const { $ref, allOf = [], if: condition, then, else: otherwise, prefixItems, ...own } = schema;
  if (prefixItems) Object.assign(own, { items: prefixItems[0], maxItems: prefixItems.length });
  const start = $ref ? merge(resolve(root.$defs?.[$ref.replace('#/$defs/', '')] as Schema, root, value), own) : own;
  const branch = condition === undefined ? undefined : holds(condition as Schema, root, value) ? then : otherwise;
  return ([...allOf, branch] as (Schema | undefined)[]).reduce((sum: Schema, part) => (part ? merge(sum, resolve(part, root, value)) : sum), start);
}

function merge(one: Schema, other: Schema): Schema {
  const merged: Schema = { ...one, ...other };
  if (one.required && other.required) merged.required = [...new Set([...one.required, ...other.required])];
  if (one.properties && other.properties) {
    merged.properties = { ...one.properties };
    for (const [name, property] of Object.entries(other.properties)) merged.properties[name] = { ...(one.properties[name] as Schema), ...(property as Schema) };
  }
  return merged;
}

/** The schema of a list's items. If items may be URLs or objects, the form offers URLs. */
export const itemsOf = (schema: Schema, root: Schema): Schema | undefined => (schema.items ? resolve(schema.items as Schema, root, 'https://') : undefined);

const isFixed = (schema: Schema | undefined) => !!schema && ('const' in schema || schema.enum?.length === 1);

/** The fields that apply to the values, without fields that have only one possible value. A schema leaves an ignored
 * field undescribed, and forbids an impossible one with "not". */
export function openFields(schema: Schema, root: Schema, values: Values): Map<string, Schema> {
  const open = new Map<string, Schema>();
  for (const [name, property] of Object.entries(resolve(schema, root, values).properties ?? {})) {
    const field = resolve(property as Schema, root, values[name]);
    const isForbidden = 'not' in field && values[name] === undefined;
    const isDescribed = field.type !== undefined || field.enum !== undefined || field.properties !== undefined;
    if (isDescribed && !isForbidden && !isFixed(schema.properties?.[name] as Schema | undefined)) open.set(name, field);
  }
  return open;
}

/** A copy of the value, with the value at a path replaced. */
export function setAt(value: unknown, [name, ...rest]: Path, next: unknown): unknown {
  if (name === undefined) return next;
  if (typeof name === 'number') return ((value ?? []) as unknown[]).map((item, i) => (i === name ? setAt(item, rest, next) : item));
  return { ...(value as Values | undefined), [name]: setAt((value as Values | undefined)?.[name], rest, next) };
}

/** The body of the request: the fields that apply, in the order of the schema, with numbered items. A field that does
 * not apply is hidden and not sent. It keeps its value in case it applies again. */
export function bodyOf(schema: Schema, model: string, values: Values): Values {
  const open = openFields(schema, schema, values);
  const body: Values = {};
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const fixed = (property as Schema).const;
    const value = name === 'model' ? (fixed ?? model) : open.has(name) ? clean(values[name]) : undefined;
    if (value === undefined) continue;
    body[name] = numbered.includes(name) && Array.isArray(value) ? value.map((item, i) => ({ ...(item as Values), index: i + 1 })) : value;
  }
  return body;
}
// Lists whose items carry their own number, which the form fills in.
const numbered = ['multi_prompt'];
