import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ apiKey: process.env.MEDIAGATE_API_KEY, baseURL: process.env.MEDIAGATE_URL });
// Three a page, so that it has to turn pages.
for await (const model of client.models.list({ limit: 3 })) console.log(model.id, model.type, model.created_at);
