// The walk through a schema, for a form and its request: which fields count for the values as they stand.
import { clean, type Schema, type Values } from './schema';
import { holds } from './validate';

/** The names of fields and the places in lists that lead to a value. */
export type Path = readonly (string | number)[];

/** The schema as it is for a value: without references, with the branches whose conditions hold, and with lists whose
 * first items are described written as short lists. */
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

/** The schema of a list's items. Where items may be addresses or objects, the form asks for addresses. */
export const itemsOf = (schema: Schema, root: Schema): Schema | undefined => (schema.items ? resolve(schema.items as Schema, root, 'https://') : undefined);

const isFixed = (schema: Schema | undefined) => !!schema && ('const' in schema || schema.enum?.length === 1);

/** The fields that count as things stand, but those of one value only. The schemas leave the value of a field open
 * where it is ignored, and forbid it where it is not possible. */
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

/** The value with another one at the end of a path. */
export function setAt(value: unknown, [name, ...rest]: Path, next: unknown): unknown {
  if (name === undefined) return next;
  if (typeof name === 'number') return ((value ?? []) as unknown[]).map((item, i) => (i === name ? setAt(item, rest, next) : item));
  return { ...(value as Values | undefined), [name]: setAt((value as Values | undefined)?.[name], rest, next) };
}

/** The body of a request: the fields that count, in the order of the schema, items numbered by their place. A field
 * that does not count is hidden: it keeps its value for the time when it counts again, and is not sent. */
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
// Lists whose items say their own place, which nobody should have to type.
const numbered = ['multi_prompt'];
