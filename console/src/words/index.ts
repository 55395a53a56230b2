// The words of the current language. Each language has a file, all of the same shape.
import { en } from './en';

export type Words = typeof en;
export const words: Words = en;
