// The models that can be used: their contracts, and the operations without a contract, which the OpenAPI document
// describes.
import { queryOptions, useQuery } from '@tanstack/react-query';
import { ApiError, call, send } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import { modelsQuery } from '../../api/models';
import type { Contract, ModelPricing, TaskList } from '../../api/types';
import type { Media } from '../../task/files';
import { takesMedia, withDefinitions, type Schema } from './schema';

export const types = ['video', 'image', 'music', 'art', 'speech'] as const;
export type ModelType = (typeof types)[number];

const minutes = 60_000;

interface Operation {
  operationId: string;
  requestBody?: { content?: Record<string, { schema: Schema; examples?: Record<string, { value: Record<string, unknown> }> }> };
  summary: string;
  tags: string[];
}
interface Document {
  paths: Record<string, { post?: Operation }>;
  components: { schemas: Record<string, Schema> };
}
export const documentQuery = queryOptions({
  queryKey: queryKeys.document,
  queryFn: async () => submitsOf(await call<Document>('GET', '/openapi.json')),
  staleTime: 30 * minutes,
});

/** An endpoint with the schema of one model's requests. */
export interface Submit {
  endpoint: string;
  summary: string;
  /** Its place in the API reference. */
  reference: string;
  model: string;
  schema: Schema;
  example: Record<string, unknown>;
}

function submitsOf(document: Document): Submit[] {
  const submits: Submit[] = [];
  for (const [endpoint, { post }] of Object.entries(document.paths)) {
    const content = post?.requestBody?.content?.['application/json'];
    if (!post?.tags.includes('Submits') || !content || endpoint.endsWith('/quote')) continue;
    const root = withDefinitions(content.schema, document.components.schemas);
    const choices = (root.oneOf as Schema[] | undefined)?.map((choice) => withDefinitions(choice, document.components.schemas)) ?? [root];
    for (const schema of choices) {
      const model = (schema.properties?.model as Schema | undefined)?.const ?? schema.title;
      if (typeof model !== 'string') continue;
      submits.push({ endpoint, model, schema, summary: post.summary, reference: `/docs/reference#${post.operationId}`, example: content.examples?.[model]?.value ?? {} });
    }
  }
  return submits;
}

export function typeOfEndpoint(endpoint: string): ModelType | undefined {
  if (endpoint.startsWith('/v1/videos/')) return 'video';
  if (endpoint.startsWith('/v1/images/')) return 'image';
  if (endpoint.startsWith('/v1/music/')) return 'music';
  if (endpoint.startsWith('/v1/artgen/')) return 'art';
  if (endpoint === '/v1/audio/speech') return 'speech';
  return undefined;
}

export interface ListedModel {
  id: string;
  type: ModelType | undefined;
  tags: string[];
  /** The last day on which the vendor serves the model, if it is known, and the model to use instead. */
  ends: string | undefined;
  replacement: string | undefined;
  /** The range of its prices; undefined for a model that the catalog lacks. */
  pricing: ModelPricing | undefined;
  submit: Submit | undefined;
  /** The first operation that takes a file of the given kind. */
  taking: Submit | undefined;
}

/** The models of the key, each with its first operation and, for a kind of media, the first operation that takes such a
 * file. */
export function useModels(media?: Media): { models: ListedModel[] | undefined; error: unknown } {
  const list = useQuery(modelsQuery);
  const submits = useQuery(documentQuery);
  const models =
    list.data && submits.data
      ? list.data.data.map((model) => {
          const own = submits.data.filter((s) => s.model === model.id);
          const submit = own[0];
          // The modal call continues a task, and takes no file of another task.
          const taking = media && own.find((s) => !s.endpoint.endsWith('/modal') && takesMedia(s.schema, media));
          const type = submit ? typeOfEndpoint(submit.endpoint) : types.find((t) => t === model.category);
          return { id: model.id, type, tags: model.capability_tags ?? [], ends: model.ends, replacement: model.replacement, pricing: model.pricing, submit, taking };
        })
      : undefined;
  return { models, error: list.error ?? submits.error };
}

/** Whether a model has a contract. Music and speech have none: the API answers 404. */
const hasContract = (submit: Submit | undefined) => !submit || !['music', 'speech'].includes(typeOfEndpoint(submit.endpoint) ?? '');

/** The contract for an operation of a model, by default the first one. */
const contractQuery = (model: string, endpoint?: string) =>
  queryOptions({
    queryKey: queryKeys.contract(model, endpoint),
    queryFn: () =>
      model.includes('/')
        ? call<Contract>('GET', '/v1/model-schema', { query: { model, endpoint } })
        : call<Contract>('GET', `/v1/models/${encodeURIComponent(model)}/schema`, { query: { endpoint } }),
    staleTime: 5 * minutes,
  });

/** The unit prices of the target's operation, one row for each combination of the fields that determine the price.
 * Undefined for operations without a contract, and until the contract is loaded. */
export function usePriceRows({ model, endpoint, listed }: Target): Contract['pricing']['rows'] | undefined {
  const isFirst = endpoint === listed.pricing?.operations[0]?.endpoint;
  const { data } = useQuery({ ...contractQuery(model, isFirst ? undefined : endpoint), enabled: hasContract(listed.submit) });
  return data?.pricing.rows;
}

/** Whether the account has any task; undefined until that is known. */
export function useMadeAny(): boolean | undefined {
  const { data } = useQuery({ queryKey: queryKeys.anyTask, queryFn: ({ signal }) => call<TaskList>('GET', '/v1/tasks', { query: { limit: 1 }, signal }) });
  return data && data.data.length > 0;
}

/** The index of the guides. It lists a page for each model of the catalog, but not for aliases. */
const guidesQuery = queryOptions({
  queryKey: queryKeys.guides,
  queryFn: async () => (await send('GET', '/llms.txt')).text(),
  staleTime: 30 * minutes,
});

/** The page of a model in the documentation; undefined if there is none. */
export function useModelPage(model: string): string | undefined {
  const { data } = useQuery(guidesQuery);
  const page = `/docs/models/${encodeURIComponent(model)}`;
  return data?.includes(`${page}.md`) ? page : undefined;
}

/** The target of a form: an endpoint and a model, the schema of its requests, and the model's other operations. */
export interface Target {
  endpoint: string;
  model: string;
  schema: Schema;
  type: ModelType | undefined;
  operations: Submit[];
  listed: ListedModel;
}

/** The target for a model, an endpoint, or both, as the URL names them. */
export function useTarget(model: string | undefined, endpoint: string | undefined): { target: Target | undefined; missing: boolean; error: unknown } {
  const submits = useQuery(documentQuery);
  const list = useQuery(modelsQuery);
  const submit = submits.data?.find((s) => (!endpoint || s.endpoint === endpoint) && (!model || s.model === model));
  const id = model ?? submit?.model ?? '';
  const known = list.data?.data.some((m) => m.id === id);
  const byContract = !!submits.data && !endpoint && known === true && hasContract(submit);
  const contract = useQuery({ ...contractQuery(id), enabled: byContract });

  const found = byContract ? contract.data : submit;
  const gone = contract.error instanceof ApiError && contract.error.status === 404;
  const missing = gone || known === false || (!!submits.data && !!list.data && !byContract && !submit);
  if (!submits.data || !list.data || !found) return { target: undefined, missing, error: missing ? null : (submits.error ?? list.error ?? contract.error) };
  const type = typeOfEndpoint(found.endpoint);
  const item = list.data.data.find((m) => m.id === id);
  return {
    target: {
      endpoint: found.endpoint,
      model: id,
      schema: 'input_schema' in found ? (found.input_schema as Schema) : found.schema,
      type,
      // The first art operation has a second endpoint, which is left out.
      operations: submits.data.filter((s) => s.model === id && !s.endpoint.endsWith('/imagine')),
      listed: { id, type, tags: item?.capability_tags ?? [], ends: item?.ends, replacement: item?.replacement, pricing: item?.pricing, submit: submits.data.find((s) => s.model === id), taking: undefined },
    },
    missing: false,
    error: null,
  };
}
