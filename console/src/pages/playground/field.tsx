// What the inputs of the form share: what is wrong with whom, and for which request.
import { createContext, useContext } from 'react';
import type { Fault } from './validate';
import type { Path } from './walk';

export interface FormState {
  faults: readonly Fault[];
  endpoint: string;
  model: string;
}
export const FormStateContext = createContext<FormState>({ faults: [], endpoint: '', model: '' });

/** The id of the input at the end of a path. */
export const idAt = (path: Path) => ['root', ...path].join('_');

/** The same of a path as the API writes it: multi_prompt[0].duration is root_multi_prompt_0_duration. */
const idOf = (path: string) => idAt(path.replaceAll(']', '').split(/[.[]/));

export function useFaultsAt(id: string, within = false): Fault[] {
  const { faults } = useContext(FormStateContext);
  return faults.filter((fault) => idOf(fault.path) === id || (within && idOf(fault.path).startsWith(`${id}_`)));
}

/** The attributes by which an input is described. */
export function useInput(id: string) {
  const wrong = useFaultsAt(id).length > 0;
  return { id, 'aria-describedby': wrong ? `${id}-hint ${id}-fault` : `${id}-hint`, 'aria-invalid': wrong || undefined, 'data-wrong': wrong || undefined } as const;
}

/** The same of several inputs that are one field. */
export function useGroup(id: string) {
  const wrong = useFaultsAt(id, true).length > 0;
  return { role: 'group', 'aria-labelledby': `${id}-label`, 'aria-describedby': wrong ? `${id}-hint ${id}-fault` : `${id}-hint`, 'data-wrong': wrong || undefined } as const;
}
