// Turns an entry of the audit into the lines that the page shows.
import type { AuditEntry } from '../../api/admin';
import { capitalised, formatTime } from '../../ui/format';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';

const w = operatorWords;

export interface Change {
  field: string;
  /** The old value, and below the new one. Each is undefined if the field was missing on that side. */
  was: string | undefined;
  is: string | undefined;
}

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The reason that the operator gave, or an empty text. */
export function reasonOf({ after }: AuditEntry): string {
  return isFields(after) && typeof after.reason === 'string' ? after.reason : '';
}

/** The fields in which before and after differ. The reason is left out, and so are fields that are empty on both sides. */
export function changesOf({ before, after }: AuditEntry): Change[] {
  const [was, is] = [flat(before), flat(after)];
  return [...new Set([...was.keys(), ...is.keys()])]
    .filter((name) => name !== 'reason' && (was.get(name) ?? words.ui.none) !== (is.get(name) ?? words.ui.none))
    .map((name) => ({ field: labelOf(name), was: was.get(name), is: is.get(name) }));
}

/** The fields as texts. A field of an inner object has both names: caps.day. */
function flat(value: unknown, outer = ''): Map<string, string> {
  const texts = new Map<string, string>();
  if (!isFields(value)) return texts;
  for (const [name, inner] of Object.entries(value)) {
    const path = outer + name;
    if (isFields(inner) && Object.keys(inner).length > 0) flat(inner, `${path}.`).forEach((text, at) => texts.set(at, text));
    else texts.set(path, textOf(path, inner));
  }
  return texts;
}

function textOf(name: string, value: unknown): string {
  if (value === null || value === '' || (Array.isArray(value) && value.length === 0) || isFields(value)) return words.ui.none;
  if (typeof value === 'boolean') return value ? w.yes : w.no;
  if (Array.isArray(value)) return value.map(String).join(', ');
  if (typeof value === 'number' && name.endsWith('_at')) return formatTime(value);
  return String(value);
}

/** The name of a field as people write it: in_flight becomes In flight. */
function labelOf(name: string): string {
  return capitalised(name.replaceAll('_', ' ').replaceAll('.', ': ').replace(/\burl\b/g, 'URL'));
}
