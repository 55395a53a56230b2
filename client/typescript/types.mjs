// Writes src/document.ts: the types of answers, from the OpenAPI document that is named.
// What submits take follows from each gateway's catalog, so it is any object here.
import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';
import { parse } from 'yaml';

const document = parse(await readFile(process.argv[2], 'utf8'));
const { schemas } = document.components;
for (const [, name] of JSON.stringify(document).matchAll(/"#\/components\/schemas\/([^"/]+)"/g)) {
  schemas[name] ??= { type: 'object', additionalProperties: true };
}
await writeFile(new URL('src/document.ts', import.meta.url), astToString(await openapiTS(document)));
