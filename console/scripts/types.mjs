// Writes src/api/openapi.d.ts: the types of the API's answers, from the OpenAPI documents of
// the public and the admin API, whose components have different names.
// What submits take follows from the catalog and is read as JSON Schema when it is
// needed, so the schemas that the server puts in are open objects here.
import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';
import { parse } from 'yaml';

const read = async (name) => parse(await readFile(new URL(`../../api/${name}`, import.meta.url), 'utf8'));
const document = await read('openapi.yaml');
const admin = await read('openapi_admin.yaml');
Object.assign(document.paths, admin.paths);
for (const [kind, components] of Object.entries(admin.components)) {
  for (const [name, component] of Object.entries(components)) {
    if (name in document.components[kind]) throw new Error(`both documents have components.${kind}.${name}`);
    document.components[kind][name] = component;
  }
}
const schemas = document.components.schemas;
JSON.stringify(document, (key, value) => {
  const name = key === '$ref' && /^#\/components\/schemas\/(.+)$/.exec(value)?.[1];
  if (name && !(name in schemas)) schemas[name] = { type: 'object', additionalProperties: true };
  return value;
});
const target = new URL('../src/api/openapi.d.ts', import.meta.url);
await writeFile(target, astToString(await openapiTS(document)));
