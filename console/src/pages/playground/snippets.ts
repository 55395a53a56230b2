// One request as a program of a few lines. The key comes from the environment. Python has our own
// client, which waits for the task and saves its files.
import type { Values } from './schema';

export const languages = ['curl', 'TypeScript', 'Python', 'Go'] as const;
export type Language = (typeof languages)[number];

interface Call {
  base: string;
  endpoint: string;
  body: Values;
  /** The file that a sound is saved to; JSON is printed. */
  file: string | undefined;
}

export function snippet(language: Language, call: Call): string {
  const url = call.base + call.endpoint;
  const json = JSON.stringify(call.body, null, 2);
  switch (language) {
    case 'curl':
      return [
        `curl -sS ${url} \\`,
        `  -H "Authorization: Bearer $MEDIAGATE_API_KEY" \\`,
        `  -H 'Content-Type: application/json' \\`,
        ...(call.file ? [`  -o ${call.file} \\`] : []),
        `  -d '${json.replaceAll("'", `'\\''`)}'`,
      ].join('\n');
    case 'TypeScript':
      return [
        ...(call.file ? [`import { writeFile } from 'node:fs/promises';`, ``] : []),
        `const response = await fetch(${JSON.stringify(url)}, {`,
        `  method: 'POST',`,
        `  headers: {`,
        '    Authorization: `Bearer ${process.env.MEDIAGATE_API_KEY}`,',
        `    'Content-Type': 'application/json',`,
        `  },`,
        `  body: JSON.stringify(${indent(json, '  ')}),`,
        `});`,
        `if (!response.ok) throw new Error(await response.text());`,
        call.file ? `await writeFile(${JSON.stringify(call.file)}, new Uint8Array(await response.arrayBuffer()));` : `console.log(await response.json());`,
      ].join('\n');
    case 'Python':
      if (!call.file) return pythonTask(call);
      return [
        `import os`,
        `import requests`,
        ``,
        `response = requests.post(`,
        `    ${JSON.stringify(url)},`,
        `    headers={"Authorization": f"Bearer {os.environ['MEDIAGATE_API_KEY']}"},`,
        `    json=${indent(python(call.body), '    ')},`,
        `)`,
        `response.raise_for_status()`,
        `with open(${JSON.stringify(call.file)}, "wb") as file:`,
        `    file.write(response.content)`,
      ].join('\n');
    case 'Go':
      return [
        `package main`,
        ``,
        `import (`,
        ...(call.file ? [] : [`\t"fmt"`]),
        `\t"io"`,
        `\t"log"`,
        `\t"net/http"`,
        `\t"os"`,
        `\t"strings"`,
        `)`,
        ``,
        `func main() {`,
        `\tbody := strings.NewReader(${goString(json)})`,
        `\trequest, err := http.NewRequest(http.MethodPost, ${JSON.stringify(url)}, body)`,
        `\tif err != nil {`,
        `\t\tlog.Fatal(err)`,
        `\t}`,
        `\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("MEDIAGATE_API_KEY"))`,
        `\trequest.Header.Set("Content-Type", "application/json")`,
        `\tresponse, err := http.DefaultClient.Do(request)`,
        `\tif err != nil {`,
        `\t\tlog.Fatal(err)`,
        `\t}`,
        `\tdefer response.Body.Close()`,
        `\tanswer, err := io.ReadAll(response.Body)`,
        `\tif err != nil {`,
        `\t\tlog.Fatal(err)`,
        `\t}`,
        `\tif response.StatusCode != http.StatusOK {`,
        `\t\tlog.Fatalf("%s: %s", response.Status, answer)`,
        `\t}`,
        ...(call.file ? [`\tif err := os.WriteFile(${JSON.stringify(call.file)}, answer, 0o644); err != nil {`, `\t\tlog.Fatal(err)`, `\t}`] : [`\tfmt.Println(string(answer))`]),
        `}`,
      ].join('\n');
  }
}

/** The request by our own client, from the submit to the files. */
function pythonTask({ base, endpoint, body: { model, ...fields } }: Call): string {
  return [
    `import os`,
    ``,
    `from mediagate import Client`,
    ``,
    `gateway = Client(${JSON.stringify(base)}, os.environ["MEDIAGATE_API_KEY"])`,
    `task = gateway.run(`,
    `    ${JSON.stringify(model)},`,
    `    ${indent(python(fields), '    ')},`,
    `    endpoint=${JSON.stringify(endpoint)},`,
    `)`,
    `print(*gateway.save(task))`,
  ].join('\n');
}

const indent = (text: string, by: string) => text.replaceAll('\n', `\n${by}`);

// A raw string cannot hold a backtick or a carriage return; JSON within JSON has neither
// unescaped, and its escapes are those of Go.
const goString = (json: string) => (json.includes('`') ? JSON.stringify(json) : '`' + json + '`');

// JSON texts are Python texts too, but for the names of three values.
function python(value: unknown, by = ''): string {
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (value === null) return 'None';
  if (typeof value !== 'object') return JSON.stringify(value);
  const inner = `${by}    `;
  const list = Array.isArray(value);
  const parts = list ? value.map((v) => inner + python(v, inner)) : Object.entries(value as Values).map(([k, v]) => `${inner}${JSON.stringify(k)}: ${python(v, inner)}`);
  if (!parts.length) return list ? '[]' : '{}';
  return `${list ? '[' : '{'}\n${parts.join(',\n')},\n${by}${list ? ']' : '}'}`;
}
