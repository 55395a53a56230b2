import OpenAI from "openai";

const client = new OpenAI({ apiKey: process.env.MEDIAGATE_API_KEY, baseURL: `${process.env.MEDIAGATE_URL}/v1`, maxRetries: 0 });

// The whole file, and the same as it comes.
const whole = await client.audio.speech.create({ model: "eta-4o-mini-tts", voice: "coral", input: "Ahoy!", response_format: "wav" });
const file = Buffer.from(await whole.arrayBuffer());
console.log("whole", whole.headers.get("content-type"), file.length, file.subarray(0, 4).toString());

const long = await client.audio.speech.create({
  model: "eta-4o-mini-tts", voice: "verse", input: "a".repeat(300) + "[[sandbox: download=1]]", instructions: "Calm.", response_format: "pcm",
});
let bytes = 0;
let pieces = 0;
for await (const piece of long.body) {
  bytes += piece.length;
  pieces++;
}
console.log("pieces", long.headers.get("content-type"), bytes, pieces > 1);

for (const [name, input] of [
  ["long", "a".repeat(4097)],
  ["refused", "[[sandbox: fail=moderation]]"],
  ["failed", "[[sandbox: fail=internal]]"],
]) {
  try {
    await client.audio.speech.create({ model: "eta-4o-mini-tts", voice: "coral", input });
    console.log(name, "no error");
  } catch (error) {
    console.log(name, error.status, error.type, error.constructor.name);
  }
}

try {
  const broken = await client.audio.speech.create({
    model: "eta-4o-mini-tts", voice: "coral", input: "[[sandbox: fail=internal, at=download]]", response_format: "wav",
  });
  await broken.arrayBuffer();
  console.log("broken", "no error");
} catch (error) {
  console.log("broken", error.constructor.name);
}
