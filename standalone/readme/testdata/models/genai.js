import { GoogleGenAI } from "@google/genai";

const client = new GoogleGenAI({ apiKey: process.env.MEDIAGATE_API_KEY, httpOptions: { baseUrl: process.env.MEDIAGATE_URL } });
const pages = await client.models.list({ config: { pageSize: 3 } });
for await (const model of pages) console.log(model.name, model.displayName);
