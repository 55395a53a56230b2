// The words of the language in use. There is one file a language, all of the same shape.
import { en } from './en';

export type Words = typeof en;
export const words: Words = en;
