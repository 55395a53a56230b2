// A request as a program: it submits the request, waits for the end of the task, prints errors and saves the files. The API
// key comes from the environment. TestConsoleCode in standalone/e2e runs each program.

type Body = Record<string, unknown>;

const plain = ['curl', 'TypeScript', 'Python', 'Go'] as const;
const clients = ['mediagate', 'Python client', 'TypeScript client', 'Go client'] as const;
export type Language = (typeof plain)[number] | (typeof clients)[number];

const speechPath = '/v1/audio/speech';

/** The languages for an endpoint. Our clients wait for tasks, and speech makes no task. */
export function languagesFor(endpoint: string): readonly Language[] {
  return endpoint === speechPath ? plain : [...plain, ...clients];
}

interface Call {
  base: string;
  endpoint: string;
  body: Body;
}

export function snippet(language: Language, call: Call): string {
  const write = call.endpoint === speechPath ? speech : task;
  return write[language](call).trimStart();
}

/** A request as three calls of curl: the first code that a new user reads and runs. It waits for a minute at most, which is
 * enough for an image. */
export function firstCall({ base, endpoint, body }: Call): string {
  if (endpoint === speechPath) return snippet('curl', { base, endpoint, body });
  const auth = '-H "Authorization: Bearer $MEDIAGATE_API_KEY"';
  return `# Submit. The answer has the ID of the task.
curl ${base}${endpoint} \\
  ${auth} \\
  -H "Idempotency-Key: $(date +%s)" \\
  -H "Content-Type: application/json" \\
  -d ${shell(json(body))} | tee task.json

# Poll. It answers once the task has ended.
id=$(jq -r '.data[0].task_id' task.json)
curl "${base}/v1/tasks/$id?wait=60" \\
  ${auth}

# Download.
curl -fL -o ${firstFile(endpoint)} "${base}/v1/tasks/$id/files/1" \\
  ${auth}`;
}

function firstFile(endpoint: string): string {
  if (endpoint.startsWith('/v1/videos/')) return 'result.mp4';
  return endpoint.startsWith('/v1/music/') ? 'result.mp3' : 'result.png';
}

const fileOf = (body: Body) => `speech.${String(body.response_format ?? 'mp3')}`;

const task: Record<Language, (call: Call) => string> = {
  curl: ({ base, endpoint, body }) => `
# Needs curl and jq, and the API key in MEDIAGATE_API_KEY.
auth="Authorization: Bearer $MEDIAGATE_API_KEY"

# Submit. The Idempotency-Key keeps a repeat from making a second task.
curl -sS --retry 5 -o task.json ${base}${endpoint} \\
  -H "$auth" -H "Idempotency-Key: $(date +%s)-$$" -H "Content-Type: application/json" \\
  -d ${shell(json(body))}
jq . task.json
id=$(jq -r '.data[0].task_id' task.json)

# Poll. Each call answers at the end of the task, or after a minute.
while
  curl -sS --retry 5 -o task.json "${base}/v1/tasks/$id?wait=60" -H "$auth"
  jq -e '.data.status | IN("pending", "processing")' task.json > /dev/null
do :; done
jq . task.json
${save(endpoint)}`,

  TypeScript: ({ base, endpoint, body }) => `
// Needs Node 20 or newer, and the API key in MEDIAGATE_API_KEY.
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';

const api = ${JSON.stringify(base)};

async function call(path: string, init: RequestInit = {}): Promise<any> {
  const headers = { Authorization: \`Bearer \${process.env.MEDIAGATE_API_KEY}\`, ...init.headers };
  const answer = await fetch(api + path, { ...init, headers });
  if (!answer.ok) throw new Error(\`\${answer.status}: \${await answer.text()}\`);
  return ((await answer.json()) as any).data;
}

const request = ${json(body)};
const [{ task_id: id }] = await call(${JSON.stringify(endpoint)}, {
  method: 'POST',
  // If the answer is lost, send the same key again: the request makes one task.
  headers: { 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() },
  body: JSON.stringify(request),
});

let task;
do task = await call(\`/v1/tasks/\${id}?wait=60\`);
while (task.status === 'pending' || task.status === 'processing');
if (task.status !== 'completed') throw new Error(task.error?.message ?? task.status);

const { videos, images, audios } = task.result;
for (const [i, file] of (videos ?? images ?? audios ?? []).entries()) {
  const name = \`\${id}-\${i + 1}.\${file.mime_type.split('/')[1]}\`;
  const answer = await fetch(file.url[0]);
  if (!answer.ok) throw new Error(\`\${name}: \${answer.status}\`);
  await writeFile(name, new Uint8Array(await answer.arrayBuffer()));
  console.log(name);
}${describes(endpoint) ? `\nconsole.log(task.result.descriptions);` : ''}`,

  Python: ({ base, endpoint, body }) => `
# Needs Python 3.9 or newer, and the API key in MEDIAGATE_API_KEY.
import json
import os
import sys
import uuid
from urllib.error import HTTPError
from urllib.request import Request, urlopen, urlretrieve

API = ${JSON.stringify(base)}


def call(path, body=None, **headers):
    headers["Authorization"] = f"Bearer {os.environ['MEDIAGATE_API_KEY']}"
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(API + path, data, headers)) as answer:
            return json.load(answer)["data"]
    except HTTPError as error:
        sys.exit(f"{error.code}: {error.read().decode()}")


request = ${python(body)}
# If the answer is lost, send the same key again: the request makes one task.
headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
task_id = call(${JSON.stringify(endpoint)}, request, **headers)[0]["task_id"]

task = {"status": "pending"}
while task["status"] in ("pending", "processing"):
    task = call(f"/v1/tasks/{task_id}?wait=60")
if task["status"] != "completed":
    sys.exit(task.get("error", {}).get("message", task["status"]))

result = task["result"]
for n, file in enumerate(result.get("videos") or result.get("images") or result.get("audios") or [], start=1):
    name = f"{task_id}-{n}.{file['mime_type'].split('/')[1]}"
    urlretrieve(file["url"][0], name)
    print(name)${describes(endpoint) ? `\nprint(*result["descriptions"], sep="\\n")` : ''}`,

  Go: ({ base, endpoint, body }) => `
// Needs the API key in MEDIAGATE_API_KEY.
package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

const api = ${JSON.stringify(base)}

const request = ${goString(json(body))}

type file struct {
	URL  []string \`json:"url"\`
	Type string   \`json:"mime_type"\`
}

type task struct {
	Status string
	Error  struct{ Message string }
	Result struct {
		Videos, Images, Audios []file
		Descriptions           []string
	}
}

// call calls the API and reads the answer's data.
func call(method, path, body, key string, data any) {
	r, err := http.NewRequest(method, api+path, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+os.Getenv("MEDIAGATE_API_KEY"))
	if key != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
	}
	text := fetch(r)
	if err := json.Unmarshal(text, &struct{ Data any }{data}); err != nil {
		log.Fatalf("%v: %s", err, text)
	}
}

func fetch(r *http.Request) []byte {
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		log.Fatalf("%s: %s", answer.Status, text)
	}
	return text
}

func main() {
	// If the answer is lost, send the same key again: the request makes one task.
	var made []struct {
		ID string \`json:"task_id"\`
	}
	call(http.MethodPost, ${JSON.stringify(endpoint)}, request, rand.Text(), &made)
	id := made[0].ID

	t := task{Status: "pending"}
	for t.Status == "pending" || t.Status == "processing" {
		call(http.MethodGet, "/v1/tasks/"+id+"?wait=60", "", "", &t)
	}
	if t.Status != "completed" {
		log.Fatalf("%s: %s", t.Status, t.Error.Message)
	}

	files := append(append(t.Result.Videos, t.Result.Images...), t.Result.Audios...)
	for i, f := range files {
		_, extension, _ := strings.Cut(f.Type, "/")
		name := fmt.Sprintf("%s-%d.%s", id, i+1, extension)
		r, err := http.NewRequest(http.MethodGet, f.URL[0], nil)
		if err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(name, fetch(r), 0o644); err != nil {
			log.Fatal(err)
		}
		fmt.Println(name)
	}
	for _, text := range t.Result.Descriptions {
		fmt.Println(text)
	}
}`,

  mediagate: ({ base, endpoint, body }) => `
# Needs the program mediagate, and the API key in MEDIAGATE_API_KEY.
# It shows the price, submits once, shows the progress and saves the files here.
export MEDIAGATE_URL=${base}
${[
  `mediagate run ${shell(String(body.model ?? 'art'))} -endpoint ${endpoint} -yes`,
  ...fieldsOf(body).map(([name, value]) => `-set ${shell(`${name}=${flagValue(value)}`)}`),
  '-key "$(date +%s)-$$"',
].join(' \\\n  ')}`,

  'Python client': ({ base, endpoint, body }) => `
# Needs the package in client/python, and the API key in MEDIAGATE_API_KEY.
import os
import uuid

from mediagate import Client

gateway = Client(${JSON.stringify(base)}, os.environ["MEDIAGATE_API_KEY"])
task = gateway.run(
    ${JSON.stringify(body.model ?? 'art')},
    ${indent(python(Object.fromEntries(fieldsOf(body))), '    ')},
    endpoint=${JSON.stringify(endpoint)},
    idempotency_key=str(uuid.uuid4()),  # keep it: a repeat with it continues the same task
    progress=lambda now: print(now.status, now.progress),
)
print(*gateway.save(task))${describes(endpoint) ? `\nprint(*task.raw["result"]["descriptions"], sep="\\n")` : ''}`,

  'TypeScript client': ({ base, endpoint, body }) => `
// Needs the package in client/typescript, and the API key in MEDIAGATE_API_KEY.
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { files, Mediagate } from '@mediagate/client';

const gateway = new Mediagate({ url: ${JSON.stringify(base)}, key: process.env.MEDIAGATE_API_KEY! });
const task = await gateway.run(
  ${JSON.stringify(body.model ?? 'art')},
  ${indent(json(Object.fromEntries(fieldsOf(body))), '  ')},
  {
    endpoint: ${JSON.stringify(endpoint)},
    idempotencyKey: randomUUID(), // keep it: a repeat with it continues the same task
    onProgress: (now) => console.log(now.status, now.progress),
  },
);
for (const file of files(task)) {
  const name = \`\${task.id}-\${file.n}.\${file.mediaType?.split('/')[1]}\`;
  const answer = await gateway.download(file);
  await writeFile(name, new Uint8Array(await answer.arrayBuffer()));
  console.log(name);
}${describes(endpoint) ? `\nconsole.log(task.result?.descriptions);` : ''}`,

  'Go client': ({ base, endpoint, body }) => `
// Needs the API key in MEDIAGATE_API_KEY.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/mediagate/mediagate/client"
)

const request = ${goString(json(Object.fromEntries(fieldsOf(body))))}

func main() {
	ctx := context.Background()
	c := client.Client{URL: ${JSON.stringify(base)}, Key: os.Getenv("MEDIAGATE_API_KEY")}
	var fields map[string]any
	if err := json.Unmarshal([]byte(request), &fields); err != nil {
		log.Fatal(err)
	}
	task, err := c.Run(ctx, client.Request{
		Model:          ${JSON.stringify(body.model ?? 'art')},
		Endpoint:       ${JSON.stringify(endpoint)},
		Fields:         fields,
		IdempotencyKey: rand.Text(), // keep it: a repeat with it continues the same task
	}, func(t client.Task) { fmt.Println(t.Status, t.Progress) })
	if err != nil {
		log.Fatal(err)
	}
	paths, err := c.Save(ctx, task, ".")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(paths)
}`,
};

// The response to a speech request is the sound. Speech takes no idempotency key: a repeat is charged again.
const speech: Record<Language, (call: Call) => string> = {
  ...task,
  curl: ({ base, endpoint, body }) => `
#!/bin/sh
# Needs curl, and the API key in MEDIAGATE_API_KEY.
set -eu
if ! curl -sS --fail-with-body -o ${shell(fileOf(body))} ${base}${endpoint} \\
  -H "Authorization: Bearer $MEDIAGATE_API_KEY" -H 'Content-Type: application/json' -d ${shell(json(body))}; then
  cat ${shell(fileOf(body))} >&2 # the reason
  rm ${shell(fileOf(body))}
  exit 1
fi
echo ${shell(fileOf(body))}`,

  TypeScript: ({ base, endpoint, body }) => `
// Needs Node 20 or newer, and the API key in MEDIAGATE_API_KEY.
import { writeFile } from 'node:fs/promises';

const request = ${json(body)};
const answer = await fetch(${JSON.stringify(base + endpoint)}, {
  method: 'POST',
  headers: { Authorization: \`Bearer \${process.env.MEDIAGATE_API_KEY}\`, 'Content-Type': 'application/json' },
  body: JSON.stringify(request),
});
if (!answer.ok) throw new Error(\`\${answer.status}: \${await answer.text()}\`);
await writeFile(${JSON.stringify(fileOf(body))}, new Uint8Array(await answer.arrayBuffer()));
console.log(${JSON.stringify(fileOf(body))});`,

  Python: ({ base, endpoint, body }) => `
# Needs Python 3.9 or newer, and the API key in MEDIAGATE_API_KEY.
import json
import os
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

request = ${python(body)}
headers = {"Authorization": f"Bearer {os.environ['MEDIAGATE_API_KEY']}", "Content-Type": "application/json"}
try:
    with urlopen(Request(${JSON.stringify(base + endpoint)}, json.dumps(request).encode(), headers)) as answer:
        sound = answer.read()
except HTTPError as error:
    sys.exit(f"{error.code}: {error.read().decode()}")
with open(${JSON.stringify(fileOf(body))}, "wb") as file:
    file.write(sound)
print(${JSON.stringify(fileOf(body))})`,

  Go: ({ base, endpoint, body }) => `
// Needs the API key in MEDIAGATE_API_KEY.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

const request = ${goString(json(body))}

func main() {
	r, err := http.NewRequest(http.MethodPost, ${JSON.stringify(base + endpoint)}, strings.NewReader(request))
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+os.Getenv("MEDIAGATE_API_KEY"))
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	sound, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		log.Fatalf("%s: %s", answer.Status, sound)
	}
	if err := os.WriteFile(${JSON.stringify(fileOf(body))}, sound, 0o644); err != nil {
		log.Fatal(err)
	}
	fmt.Println(${JSON.stringify(fileOf(body))})
}`,
};

// The last command of the shell program. A voice has no file: its task is printed before.
function save(endpoint: string): string {
  if (endpoint.endsWith('/createVoice')) return '';
  if (describes(endpoint)) return `
# Print the descriptions.
jq -r '.data.result.descriptions[]' task.json`;
  return `
# Download.
curl -fsSJ --remote-name-all -w '%{filename_effective}\\n' \\
  $(jq -r '.data.result | (.videos // .images // .audios)[].url[0]' task.json)`;
}

/** Whether the endpoint makes texts and no files. */
function describes(endpoint: string): boolean {
  return endpoint === '/v1/artgen/generations/describe';
}

function json(body: Body): string {
  return JSON.stringify(body, null, 2);
}

const fieldsOf = (body: Body) => Object.entries(body).filter(([name]) => name !== 'model');

const indent = (text: string, by: string) => text.replaceAll('\n', `\n${by}`);

/** A text as one word of a shell, in quotes if it needs them. */
const shell = (text: string) => (/^[\w.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** A value as mediagate run reads it. A text that is also valid JSON is written as a JSON string, so that it stays a text. */
export function flagValue(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  try {
    JSON.parse(value);
    return JSON.stringify(value);
  } catch {
    return value;
  }
}

// A raw string of Go cannot hold a backtick or a carriage return. JSON writes a carriage return as an escape. With a
// backtick the text becomes an ordinary string: JSON's escapes are valid in Go.
function goString(text: string): string {
  const plain = text.replaceAll('\uFEFF', '\\ufeff'); // no Go source may have a byte order mark within it
  return plain.includes('`') ? JSON.stringify(plain) : '`' + plain + '`';
}

// JSON is valid Python except for the names of three values.
function python(value: unknown, by = ''): string {
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (value === null) return 'None';
  if (typeof value !== 'object') return JSON.stringify(value);
  const inner = `${by}    `;
  const list = Array.isArray(value);
  const parts = list ? value.map((v) => inner + python(v, inner)) : Object.entries(value as Body).map(([k, v]) => `${inner}${JSON.stringify(k)}: ${python(v, inner)}`);
  if (!parts.length) return list ? '[]' : '{}';
  return `${list ? '[' : '{'}\n${parts.join(',\n')},\n${by}${list ? ']' : '}'}`;
}
