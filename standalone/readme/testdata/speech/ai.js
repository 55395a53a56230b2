import { createOpenAI } from "@ai-sdk/openai";
import * as ai from "ai";

const generateSpeech = ai.generateSpeech ?? ai.experimental_generateSpeech;
const openai = createOpenAI({ apiKey: process.env.MEDIAGATE_API_KEY, baseURL: `${process.env.MEDIAGATE_URL}/v1` });

const { audio } = await generateSpeech({
  model: openai.speech("eta-4o-mini-tts"), text: "Ahoy!", voice: "coral", outputFormat: "wav", instructions: "Calm.", speed: 1.5,
});
console.log("audio", audio.mediaType, audio.uint8Array.length, Buffer.from(audio.uint8Array.subarray(0, 4)).toString());

try {
  await generateSpeech({ model: openai.speech("eta-4o-mini-tts"), text: "a".repeat(4097), voice: "coral", maxRetries: 0 });
  console.log("long", "no error");
} catch (error) {
  console.log("long", error.statusCode);
}
