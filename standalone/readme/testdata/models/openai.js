import OpenAI from "openai";

const client = new OpenAI({ apiKey: process.env.MEDIAGATE_API_KEY, baseURL: `${process.env.MEDIAGATE_URL}/v1` });
for await (const model of client.models.list()) console.log(model.id, model.object, model.owned_by);
