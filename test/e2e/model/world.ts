import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import type { ActionRecord } from "../../../core/evidence/record/record.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { ModelProvider } from "../../fixture/model-provider.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { allowEverything } from "../../support/pack.ts";

/** Who holds a key of the world. */
export type KeyHolder = "agent" | "operator" | "other";

export interface ModelWorldOptions {
  /** Members of `model_gateway` beside its routes. */
  readonly settings?: string;
  /** Instead of one route to each provider: `chat-model`, `messages-model`, `responses-model`. */
  readonly routes?: string;
  /** Further models of all providers. */
  readonly models?: readonly string[];
  /** Further members of all providers. */
  readonly provider?: string;
  /** Further rules of the pack that allows everything. */
  readonly rules?: string;
  /** Shipped packs beside the one that allows everything. */
  readonly packs?: readonly string[];
  /** Further members of `policy`. */
  readonly policy?: string;
  /** Further top-level keys. */
  readonly more?: string;
  /** The `usage` key; without it, limits that no test reaches. */
  readonly usage?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly ownProcess?: boolean;
  /** Where `packs/open` lies already, signed perhaps: nothing is written there but the configuration. */
  readonly folder?: string;
}

/** A gateway process between clients and providers that speak an API each, all of them one server with a log. */
export interface ModelWorld {
  readonly gateway: RunningGateway;
  readonly provider: ModelProvider;
  readonly keys: Readonly<Record<KeyHolder, string>>;
  /** What the gateway presents to the providers. */
  readonly providerKey: string;
  /** All records of actions in the tenant's chain. */
  records(): Promise<readonly ActionRecord[]>;
  stop(): Promise<void>;
}

const unlimited = "usage: { requests_per_minute: 1000000, tokens_per_minute: 1000000000 }";
const usualRoutes = `
    - { model: chat-model, providers: [{ name: open, model: open-1 }] }
    - { model: messages-model, providers: [{ name: claude, model: claude-1 }] }
    - { model: responses-model, providers: [{ name: resp, model: resp-1 }] }
    - { model: mock, providers: [{ name: mock }] }`;

export async function openModelWorld(options: ModelWorldOptions = {}): Promise<ModelWorld> {
  const provider = await ModelProvider.start();
  const keys = { agent: newKey(), operator: newKey(), other: newKey() };
  const providerKey = newKey();
  try {
    const gateway = await startGateway({
      config: configFor(provider, keys, options),
      ...(options.folder === undefined
        ? { files: { ...allowEverything("packs/open"), ...ruleFiles(options.rules), ...options.files } }
        : { folder: options.folder }),
      env: { PROVIDER_KEY: providerKey },
      ownProcess: options.ownProcess ?? false,
    });
    const reader = new EvidenceReader(gateway.adminUrl, keys.operator);
    return {
      gateway,
      provider,
      keys,
      providerKey,
      records: () => reader.recordsOf(),
      stop: async () => {
        await gateway.stop().finally(() => provider.stop());
      },
    };
  } catch (error) {
    provider.stop();
    throw error;
  }
}

function ruleFiles(rules: string | undefined): Readonly<Record<string, string>> {
  return rules === undefined ? {} : { "packs/open/rules/more.yaml": `rules:\n${rules}` };
}

function configFor(provider: ModelProvider, keys: ModelWorld["keys"], options: ModelWorldOptions): string {
  const entry = (id: KeyHolder, tenant: string, role: string): string =>
    `  - { id: ${id}, tenant: ${tenant}, role: ${role}, key_hash: "sha256:${sha256(keys[id])}" }`;
  const {
    settings = "tool_passthrough: client",
    routes = usualRoutes,
    models = [],
    packs = [],
    provider: both = "",
    policy = "",
    more = "",
    usage = unlimited,
  } = options;
  return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys:
${entry("agent", "acme", "viewer")}
${entry("operator", "acme", "operator")}
${entry("other", "umbrella", "viewer")}
providers:
  - name: open
    type: openai
    base_url: ${provider.baseUrl("openai")}
    api_key_env: PROVIDER_KEY
    models: [${["chat-model", "shared-model", ...models].join(", ")}]
    ${both}
  - name: claude
    type: anthropic
    base_url: ${provider.baseUrl("anthropic")}
    api_key_env: PROVIDER_KEY
    models: [${["messages-model", "shared-model", ...models].join(", ")}]
    ${both}
  - name: resp
    type: responses
    base_url: ${provider.baseUrl("responses")}
    api_key_env: PROVIDER_KEY
    models: [${["responses-model", "shared-model", ...models].join(", ")}]
    ${both}
  - { name: mock, type: mock, models: [mock] }
model_gateway:
  ${settings}
  routes: ${routes}
sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }
${usage}
policy:
  packs: [${["packs/open", ...packs.map((name) => join(repositoryRoot, "policy-packs", name))].map((path) => `{ path: "${path}" }`).join(", ")}]
  ${policy}
${more}
`;
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function newKey(): string {
  return `test-${randomBytes(32).toString("base64url")}`;
}
