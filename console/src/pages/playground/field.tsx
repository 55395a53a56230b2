// The context that all inputs of a form share: its faults, its endpoint and its model.
import { createContext, useContext } from 'react';
import type { Fault } from './validate';
import type { Path } from './walk';

export interface FormState {
  faults: readonly Fault[];
  endpoint: string;
  model: string;
}
export const FormStateContext = createContext<FormState>({ faults: [], endpoint: '', model: '' });

/** The id of the input for a path. */
export const idAt = (path: Path) => ['root', ...path].join('_');

/** The id for a path as the API writes it: multi_prompt[0].duration becomes root_multi_prompt_0_duration. */
const idOf = (path: string) => idAt(path.replaceAll(']', '').split(/[.[]/));

export function useFaultsAt(id: string, within = false): Fault[] {
  const { faults } = useContext(FormStateContext);
  return faults.filter((fault) => idOf(fault.path) === id || (within && idOf(fault.path).startsWith(`${id}_`)));
}

/** The attributes that describe an input. */
export function useInput(id: string) {
  const wrong = useFaultsAt(id).length > 0;
  return { id, 'aria-describedby': wrong ? `${id}-hint ${id}-fault` : `${id}-hint`, 'aria-invalid': wrong || undefined, 'data-wrong': wrong || undefined } as const;
}

/** The attributes that describe a field with several inputs. */
export function useGroup(id: string) {
  const wrong = useFaultsAt(id, true).length > 0;
  return { role: 'group', 'aria-labelledby': `${id}-label`, 'aria-describedby': wrong ? `${id}-hint ${id}-fault` : `${id}-hint`, 'data-wrong': wrong || undefined } as const;
}
