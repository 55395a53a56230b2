// Checks requests against their schema in the browser, without eval, so that mistakes show before anything is sent. The
// server checks each request again.
import { Validator, type OutputUnit, type Schema as Draft } from '@cfworker/json-schema';
import { words } from '../../words';
import { clean, type Schema, type Values } from './schema';

const w = words.playground.faults;

export interface Fault {
  /** The field, as the API writes it: multi_prompt[0].duration. */
  path: string;
  message: string;
  /** The field is still empty. It is shown as a fault only after an attempt to run the request. */
  missing: boolean;
}

const compiled = new WeakMap<object, Map<string, Validator>>();
// The validator changes the schemas that it gets, so it gets a copy. A part of a schema is checked with the definitions of
// the whole schema.
function validatorOf(schema: Schema, root: Schema): Validator {
  let parts = compiled.get(root);
  if (!parts) compiled.set(root, (parts = new Map()));
  const text = JSON.stringify(schema);
  let validator = parts.get(text);
  if (!validator) {
    const copy = JSON.parse(JSON.stringify({ ...schema, $defs: root.$defs })) as Draft;
    validator = new Validator(copy, '2020-12', false);
    parts.set(text, validator);
  }
  return validator;
}

/** Whether a value meets a condition of the schema. */
export const holds = (condition: Schema, root: Schema, value: unknown): boolean => validatorOf(condition, root).validate(clean(value) ?? {}).valid;

/** The faults of a body, at most one for each field. */
export function faultsOf(schema: Schema, body: Values): Fault[] {
  const faults = new Map<string, Fault>();
  for (const error of validatorOf(schema, schema).validate(body).errors) {
    const fault = faultOf(error, schema);
    if (fault && !faults.has(fault.path)) faults.set(fault.path, fault);
  }
  return [...faults.values()];
}

function faultOf(error: OutputUnit, root: Schema): Fault | undefined {
  const path = pathOf(error.instanceLocation);
  const at = schemaAt(root, error.keywordLocation);
  const rule = at['x-rule'] as string | undefined;
  const say = (message: string, missing = false): Fault => ({ path, message: !missing && rule ? w.rule(rule) : message, missing });
  switch (error.keyword) {
    case 'required': {
      const name = /"(.+)"/.exec(error.error)?.[1] ?? '';
      // anyOf below reports a choice among fields once.
      if (/\/anyOf\/\d+\/required$/.test(error.keywordLocation)) return undefined;
      return { path: path ? `${path}.${name}` : name, message: w.required, missing: true };
    }
    case 'anyOf': {
      const names = ((at.anyOf ?? []) as Schema[]).flatMap((branch) => branch.required ?? []);
      if (!names[0]) return undefined;
      return { path: path ? `${path}.${names[0]}` : names[0], message: w.oneOf(names.map((name) => titleOf(root, name)).join(', ')), missing: true };
    }
    case 'minLength':
    case 'pattern':
      return error.keyword === 'minLength' || at.pattern === '\\S' ? say(w.required, true) : say(at.format === 'uri-reference' ? w.url : w.form);
    case 'maxLength':
      return say(w.tooLong(at.maxLength ?? 0));
    case 'minimum':
      return say(w.atLeast(at.minimum ?? 0));
    case 'maximum':
      return say(w.atMost(at.maximum ?? 0));
    case 'minItems':
      return say(w.minItems(at.minItems ?? 0), true);
    case 'maxItems':
      return say(w.maxItems(at.maxItems ?? 0));
    case 'enum':
      return say(w.oneOfValues((at.enum ?? []).join(', ')));
    case 'type':
      return say(at.type === 'integer' ? w.integer : w.form);
    case 'not':
    case 'false':
      return say(w.notPossible);
    case 'format':
      return say(at.format === 'uri-reference' ? w.url : w.form);
    default:
      return undefined; // an error of the schema around the field at fault
  }
}

/** The title of a field, with the number of an item: image_urls[0] becomes "Reference images 1". */
export function titleOf(schema: Schema, path: string): string {
  const [, name = path, place] = /^([^.[]*)(?:\[(\d+)\])?/.exec(path) ?? [];
  const title = (schema.properties?.[name] as Schema | undefined)?.title as string | undefined;
  if (title === undefined) return path;
  return place === undefined ? title : `${title} ${Number(place) + 1}`;
}

/** Replaces the path of an item at the start of the API's message by the title of its field. */
export function withTitle(schema: Schema, fault: Fault): Fault {
  const { path, message } = fault;
  if (!path.endsWith(']') || !message.startsWith(`${path} `)) return fault;
  return { ...fault, message: titleOf(schema, path) + message.slice(path.length) };
}

// Writes a JSON pointer as the API writes paths: "#/multi_prompt/0/duration" becomes multi_prompt[0].duration.
function pathOf(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => decodeURIComponent(part).replace(/~1/g, '/').replace(/~0/g, '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path ? `${path}.${part}` : part), '');
}

// The schema that has the keyword at a location. References on the way are followed.
function schemaAt(root: Schema, location: string): Schema {
  let node: unknown = root;
  for (const part of location.split('/').slice(1, -1)) {
    const key = decodeURIComponent(part).replace(/~1/g, '/').replace(/~0/g, '~');
    node = (node as Record<string, unknown> | undefined)?.[key];
    if (key === '$ref') node = root.$defs?.[String(node).replace('#/$defs/', '')];
  }
  return (typeof node === 'object' && node !== null ? node : {}) as Schema;
}
