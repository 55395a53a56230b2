// Judges bodies by JSON Schemas, as a client of the gateway would. Standard
// input has {schemas: {id: schema}, bodies: [{model: id, body}]}; the verdicts
// are printed in the order of the bodies.
import { readFileSync } from "node:fs";
import Ajv from "ajv/dist/2020.js";
import formats from "ajv-formats";

const { schemas, bodies } = JSON.parse(readFileSync(0, "utf8"));
// What is no error but a matter of taste: a condition that requires a field which
// is described elsewhere, or a list of which only the first item counts.
const ajv = new Ajv({ strict: true, strictTypes: false, strictRequired: false, strictTuples: false });
formats(ajv);
// The gateway's own: what a client cannot know.
ajv.addFormat("image-data", true);
for (const keyword of ["x-media", "x-unit", "x-group", "x-rule", "x-missing", "x-value"]) ajv.addKeyword(keyword);

const judges = Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, ajv.compile(schema)]));
console.log(JSON.stringify(bodies.map(({ model, body }) => judges[model](body))));
