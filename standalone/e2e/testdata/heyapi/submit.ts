// Submits a video with what @hey-api/openapi-ts makes of the gateway's document, and
// waits for its end.
import { createVideo, getTask } from './client';
import { client } from './client/client.gen';

async function run(baseUrl: string, auth: string): Promise<string> {
  client.setConfig({ baseUrl, auth, throwOnError: true });
  const submitted = await createVideo({ body: { model: 'alpha-v3', prompt: 'a paper boat', duration: 3 }, throwOnError: true });
  const [task] = submitted.data.data as { task_id: string }[];
  const read = await getTask({ path: { task_id: task.task_id }, query: { wait: 60 }, throwOnError: true });
  return `${read.data.data.id === task.task_id} ${read.data.data.status}`;
}

run(process.argv[2], process.argv[3]).then(console.log, (error) => {
  console.error(error);
  process.exit(1);
});
