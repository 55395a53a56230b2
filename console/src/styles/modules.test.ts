import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

// TypeScript does not check the names in CSS modules: a misspelled name is undefined and no error.
const modules = Object.keys(import.meta.glob('../**/*.module.css'));
const components = import.meta.glob<string>('../**/*.tsx', { query: '?raw', import: 'default', eager: true });

const known = new Set<string>();
for (const file of modules) {
  const css = readFileSync(new URL(file, import.meta.url), 'utf8');
  const selectors = css.replace(/\/\*[^]*?\*\/|:global\([^)]*\)|\{[^{}]*\}/g, ' ');
  for (const [, name] of selectors.matchAll(/\.([a-zA-Z]\w*)/g)) known.add(`${file} ${name}`);
}

const named = new Set<string>();
for (const [file, source] of Object.entries(components)) {
  for (const [, module, path] of source.matchAll(/^import (\w+) from '(.+\.module\.css)';/gm)) {
    const css = new URL(path!, `file:///src/styles/${file}`).pathname.replace('/src/', '../');
    for (const [, name] of source.matchAll(new RegExp(`\\b${module}\\.([a-zA-Z]\\w*)`, 'g'))) if (name !== 'module') named.add(`${css} ${name}`);
  }
}

test('each class that a component names is in its module', () => {
  expect([...named].filter((name) => !known.has(name))).toEqual([]);
});

test('each class of a module is named by a component', () => {
  const byNumber = /usage\.module\.css c\d$/; // the colours of the series
  expect([...known].filter((name) => !named.has(name) && !byNumber.test(name))).toEqual([]);
});
