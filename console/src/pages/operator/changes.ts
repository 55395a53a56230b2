// An entry of the audit as lines that people read.
import type { AuditEntry } from '../../api/admin';
import { capitalised, formatTime } from '../../ui/format';
import { words } from '../../words';

const w = words.operator;

export interface Change {
  field: string;
  /** undefined where it was not there before; and the same of what is there no more. */
  was: string | undefined;
  is: string | undefined;
}

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Why it was done, where somebody said so. */
export function reasonOf({ after }: AuditEntry): string {
  return isFields(after) && typeof after.reason === 'string' ? after.reason : '';
}

/** The fields in which before and after differ, without the reason and without those that have nothing on either side. */
export function changesOf({ before, after }: AuditEntry): Change[] {
  const [was, is] = [flat(before), flat(after)];
  return [...new Set([...was.keys(), ...is.keys()])]
    .filter((name) => name !== 'reason' && (was.get(name) ?? words.ui.none) !== (is.get(name) ?? words.ui.none))
    .map((name) => ({ field: labelOf(name), was: was.get(name), is: is.get(name) }));
}

/** Each field as a text; those of an object within have both names. */
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

/** in_flight as people write it: In flight. */
function labelOf(name: string): string {
  return capitalised(name.replaceAll('_', ' ').replaceAll('.', ': ').replace(/\burl\b/g, 'URL'));
}
