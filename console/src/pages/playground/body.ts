// The body of a request, of what was typed into its form. A field that does not count as things
// stand is hidden: it keeps its value for the time when it counts again, and is not sent.
import { createSchemaUtils } from '@rjsf/utils';
import { clean, formSchema, isOpen, type Schema, type Values } from './schema';
import { validator } from './validate';

// The utilities of the form library, by the schema that they are of.
const utilities = new WeakMap<Schema, ReturnType<typeof createSchemaUtils<Values>>>();

/** The names of the fields that the form shows for the values, without those of one value only. */
function openFields(schema: Schema, values: Values): Set<string> {
  let utils = utilities.get(schema);
  if (!utils) utilities.set(schema, (utils = createSchemaUtils<Values>(validator, formSchema(schema))));
  const resolved = utils.retrieveSchema(utils.getRootSchema(), values);
  const names = Object.entries(resolved.properties ?? {}).filter(([name, property]) => isOpen(utils.retrieveSchema(property as Schema, values[name] as Values), values[name]));
  return new Set(names.map(([name]) => name));
}

const isWithin = (field: string, name: string) => field === `root_${name}` || field.startsWith(`root_${name}_`);

/** The form's values after a change of one field. The form library empties a field whose schema
 * another field has changed: one that was hidden, or is hidden now, keeps its value. */
export function keepHidden(schema: Schema, before: Values, after: Values, changed: string): Values {
  const lost = Object.keys(before).filter((name) => before[name] !== undefined && after[name] === undefined && !isWithin(changed, name));
  if (lost.length === 0) return after;
  const [wasOpen, isNow] = [openFields(schema, before), openFields(schema, after)];
  return { ...after, ...Object.fromEntries(lost.filter((name) => !wasOpen.has(name) || !isNow.has(name)).map((name) => [name, before[name]])) };
}

/** The body of a request: the fields that count, in the order of the schema, items numbered by their place. */
export function bodyOf(schema: Schema, model: string, values: Values): Values {
  const open = openFields(schema, values);
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
