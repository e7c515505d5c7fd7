import { randomBytes } from "node:crypto";
import { stringify } from "yaml";
import { GatewayError } from "../../action/error.ts";
import type { JsonObject } from "../../action/json.ts";
import { elapsedMs, identity, replyJsonBounds } from "../../compose/identity.ts";
import { checkDocument } from "../../config/check.ts";
import { parseDocument } from "../../config/document.ts";
import { FaultList } from "../../config/fault.ts";
import { type FileForm, fileSchema } from "../../config/file-schema.ts";
import type { GatewayConfig, UpstreamConfig } from "../../config/gateway-config.ts";
import { buildConfig } from "../../config/load.ts";
import { checkRules } from "../../config/rule.ts";
import { readSecrets } from "../../config/secret.ts";
import { EgressGuard } from "../../egress/egress-guard.ts";
import { Catalog } from "../../upstream/catalog.ts";
import type { ConnectionListener, Withheld } from "../../upstream/connection.ts";
import type { ListedTool } from "../../upstream/tool-reader.ts";
import { Upstream } from "../../upstream/upstream.ts";

/** The tools of a server, and those that the gateway would hide because their definitions are malformed. */
export interface ServerTools {
  readonly tools: readonly ListedTool[];
  readonly withheld: readonly Withheld[];
}

/** Servers that are started at a time. */
const maxStarts = 6;

/**
 * Starts a server as the gateway would, reads its tools and ends it. Rejects with the fault of its configuration, of its start, or
 * of its list, after `waitMs` at the latest. `source` is the file that the configuration will be, `env` has its variables.
 */
export async function listServerTools(
  upstream: JsonObject,
  { source, env, waitMs }: { readonly source: string; readonly env: NodeJS.ProcessEnv; readonly waitMs: number },
): Promise<ServerTools> {
  const config = configWith(upstream, source, env);
  const [server] = config.upstreams;
  if (server === undefined) throw new TypeError("listServerTools: expected one upstream");
  return readTools({ ...server, startTimeoutMs: waitMs, timeoutMs: waitMs, maxTimeoutMs: waitMs }, config, waitMs);
}

/** Calls `work` for each item, some of them at a time, and resolves with the results in the same order. */
export async function eachAtATime<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: maxStarts }, worker));
  return results;
}

/** A configuration with one upstream, checked as a file is. */
function configWith(upstream: JsonObject, source: string, env: NodeJS.ProcessEnv): GatewayConfig {
  const faults = new FaultList("gateway.yaml");
  const document = parseDocument("gateway.yaml", stringify({ upstreams: [upstream] }), faults);
  const draft = document === undefined ? undefined : checkDocument(document, fileSchema, faults);
  const secrets = readSecrets(draft, env, faults);
  checkRules(draft, secrets, faults);
  faults.throwIfAny();
  return buildConfig(draft as FileForm, secrets, source, null);
}

async function readTools(config: UpstreamConfig, whole: GatewayConfig, waitMs: number): Promise<ServerTools> {
  const upstream = new Upstream(config, {
    bounds: { bytes: whole.limits.upstreamReplyBytes, json: replyJsonBounds(whole) },
    shares: whole.limits,
    clock: elapsedMs,
    random: randomBytes,
    onEvent: () => undefined,
    egress: new EgressGuard(whole.egress),
  });
  let timer: NodeJS.Timeout | undefined;
  // A list of a hundred pages, each just in time, would take a hundred times as long.
  const late = new Promise<never>((_, reject) => {
    const fault = new GatewayError("UPSTREAM_TIMEOUT", `no list of its tools within ${Math.round(waitMs / 1_000)} s`);
    timer = setTimeout(() => reject(fault), waitMs);
  });
  try {
    return await Promise.race([openAndList(upstream), late]);
  } finally {
    clearTimeout(timer);
    await upstream.close();
  }
}

async function openAndList(upstream: Upstream): Promise<ServerTools> {
  const connection = await upstream.open({
    clientInfo: identity,
    capabilities: {},
    prefers: "modern",
    isRenewable: false,
    listener: nobody,
    lease: { holder: null, isSpare: () => false, giveUp: () => Promise.resolve() },
  });
  const catalog = new Catalog({
    upstream: upstream.config.name,
    tools: upstream.tools,
    clock: elapsedMs,
    onEvent: () => undefined,
    connect: () => connection,
  });
  await catalog.tools.reread();
  const { items, withheld } = catalog.tools.good ?? { items: [], withheld: [] };
  return { tools: items, withheld };
}

/** There is no client behind the connection. */
const nobody: ConnectionListener = {
  onNotification: () => undefined,
  onRequest: async () => {
    throw new GatewayError("METHOD_UNKNOWN", "this connection has no client behind it");
  },
  onClose: () => undefined,
};
