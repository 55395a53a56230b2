// Writes src/api/openapi.d.ts: the types of the API's answers, from its OpenAPI document.
// What submits take follows from the catalog and is read as JSON Schema when it is
// needed, so the schemas that the server puts in are open objects here.
import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';
import { parse } from 'yaml';

const document = parse(await readFile(new URL('../../api/openapi.yaml', import.meta.url), 'utf8'));
const schemas = document.components.schemas;
JSON.stringify(document, (key, value) => {
  const name = key === '$ref' && /^#\/components\/schemas\/(.+)$/.exec(value)?.[1];
  if (name && !(name in schemas)) schemas[name] = { type: 'object', additionalProperties: true };
  return value;
});
const target = new URL('../src/api/openapi.d.ts', import.meta.url);
await writeFile(target, astToString(await openapiTS(document)));
