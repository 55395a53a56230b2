// What the generated types must take, and what they must refuse. It is compiled
// and never run.
import createClient from "openapi-fetch";
import type { components, paths, webhooks } from "./mediagate.js";

const gateway = createClient<paths>({ baseUrl: "http://127.0.0.1" });
const videos = "/v1/videos/generations";

export const taken = [
  gateway.POST(videos, { body: { model: "alpha-v3", prompt: "a" } }),
  gateway.POST(videos, { body: { model: "delta-02", prompt: "a", duration: 10, resolution: "768p", webhook: "https://a.example" } }),
  gateway.POST("/v1/images/generations", { body: { model: "zeta-2-ext", prompt: "a", n: 2 } }),
  gateway.POST("/v1/quote", { body: { endpoint: videos, model: "alpha-v3", prompt: "a" } }),
  gateway.GET("/v1/tasks", { params: { query: { status: "failed", limit: 5 } } }),
  gateway.GET("/v1/models/{model}/schema", { params: { path: { model: "alpha-v3" } } }),
];

export const refused = [
  // @ts-expect-error there is no such model
  gateway.POST(videos, { body: { model: "omega", prompt: "a" } }),
  // @ts-expect-error this one makes images
  gateway.POST(videos, { body: { model: "theta-image-turbo", prompt: "a" } }),
  // @ts-expect-error the prompt is missing
  gateway.POST(videos, { body: { model: "alpha-v3" } }),
  // @ts-expect-error a duration is a number
  gateway.POST(videos, { body: { model: "alpha-v3", prompt: "a", duration: "5" } }),
  // @ts-expect-error the endpoint is missing
  gateway.POST("/v1/quote", { body: { model: "alpha-v3", prompt: "a" } }),
  // @ts-expect-error there is no such status
  gateway.GET("/v1/tasks", { params: { query: { status: "done" } } }),
  // @ts-expect-error there is no such path
  gateway.GET("/v1/nothing"),
];

type Callback = webhooks["taskEnded"]["post"]["requestBody"]["content"]["application/json"];
export const reason = (ended: Callback): components["schemas"]["Failure"]["code"] | undefined => ended.error?.code;
