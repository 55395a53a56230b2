// Checks requests against their schema in the browser, without eval. The server checks
// them again; this says what is wrong before anything is sent.
import { Validator, type OutputUnit, type Schema as Draft } from '@cfworker/json-schema';
import { words } from '../../words';
import { clean, type Schema, type Values } from './schema';

const w = words.playground.faults;

export interface Fault {
  /** As the API names fields: multi_prompt[0].duration. */
  path: string;
  message: string;
  /** Nothing is there yet, which is no fault while somebody still types. */
  missing: boolean;
}

const compiled = new WeakMap<object, Map<string, Validator>>();
// The validator writes into the schemas that it gets, so it gets a copy. Parts of a schema
// are checked with the definitions of the whole.
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

/** Whether a condition of the schema holds for a value. */
export const holds = (condition: Schema, root: Schema, value: unknown): boolean => validatorOf(condition, root).validate(clean(value) ?? {}).valid;

/** What is wrong with a body, one fault a field. */
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
      // A choice among fields is told once, below.
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
      return undefined; // the errors of what is around the one at fault
  }
}

export function titleOf(schema: Schema, path: string): string {
  const name = /^[^.[]*/.exec(path)?.[0] ?? path;
  return ((schema.properties?.[name] as Schema | undefined)?.title as string | undefined) ?? path;
}

// "#/multi_prompt/0/duration" is multi_prompt[0].duration.
function pathOf(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => decodeURIComponent(part).replace(/~1/g, '/').replace(/~0/g, '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path ? `${path}.${part}` : part), '');
}

// The schema that holds the keyword at a location, through references.
function schemaAt(root: Schema, location: string): Schema {
  let node: unknown = root;
  for (const part of location.split('/').slice(1, -1)) {
    const key = decodeURIComponent(part).replace(/~1/g, '/').replace(/~0/g, '~');
    node = (node as Record<string, unknown> | undefined)?.[key];
    if (key === '$ref') node = root.$defs?.[String(node).replace('#/$defs/', '')];
  }
  return (typeof node === 'object' && node !== null ? node : {}) as Schema;
}
