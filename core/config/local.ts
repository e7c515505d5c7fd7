import { resolve } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { Document, isMap, isScalar, isSeq } from "yaml";
import { deepFreeze, type JsonObject } from "../action/json.ts";
import { memberSchema, withDefaults } from "./check.ts";
import { fileSchema } from "./file-schema.ts";
import type { GatewayConfig, KeyConfig, ModelRoute, PackConfig, UpstreamConfig } from "./gateway-config.ts";
import { buildConfig, ownReviewUrl } from "./load.ts";
import { trustSchema } from "./trust-schema.ts";

interface LocalOptions {
  readonly dataDir: string;
  readonly packs: readonly PackConfig[];
  readonly plugins: GatewayConfig["policy"]["plugins"];
  readonly upstreams: readonly UpstreamConfig[];
  readonly keys: readonly KeyConfig[];
  /** A file outside `dataDir`; null for none. */
  readonly mark: string | null;
  /** The gateway port; the admin and metrics ports follow it. 0: any free ports. Left out: the defaults. */
  readonly firstPort?: number;
}

/** The configuration of local mode, which has no file: every default, on loopback, keys required, and the model `mock`. */
export function localConfig({
  dataDir,
  mark,
  packs,
  plugins,
  upstreams,
  keys,
  firstPort,
}: LocalOptions): GatewayConfig {
  const defaults = buildConfig(
    withDefaults(fileSchema, {}),
    {
      keyHashes: [],
      console: null,
      upstreams: [],
      providers: [null],
      engines: [],
      witnesses: [],
      webhooks: [],
      telemetry: { values: {}, origins: {} },
      store: { url: null, secret: null, host: null },
      reports: null,
    },
    resolve("gateway.yaml"),
    null,
  );
  const listen = { ...defaults.listen, ...(firstPort === undefined ? {} : portsFrom(firstPort)) };
  return deepFreeze({
    ...defaults,
    source: null,
    listen,
    approvals: { ...defaults.approvals, reviewUrl: ownReviewUrl(listen, null) },
    dataDir: resolve(dataDir),
    state: { ...defaults.state, mark: mark === null ? null : resolve(mark) },
    keys,
    upstreams,
    modelGateway: { ...defaults.modelGateway, toolPassthrough: "client", routes: [mockRoute] },
    policy: { ...defaults.policy, packs, plugins },
  });
}

/** The route to the provider that exists without a file. */
const mockRoute: ModelRoute = {
  model: "mock",
  steps: [{ provider: "mock", model: "mock", weight: null }],
  fallback: false,
  canary: null,
};

function portsFrom(first: number): Pick<GatewayConfig["listen"], "gatewayPort" | "adminPort" | "metricsPort"> {
  const step = first === 0 ? 0 : 1;
  return { gatewayPort: first, adminPort: first + step, metricsPort: first + 2 * step };
}

/** Characters of a line of comment. */
const maxColumns = 110;

/** The text of a configuration file with the values of `form`, each key below its description, and `intro` at the top. */
export function annotateConfig(form: JsonObject, intro: string): string {
  return annotate(form, fileSchema, intro);
}

/** The text of a trust policy, likewise. */
export function annotateTrust(form: JsonObject, intro: string): string {
  return annotate(form, trustSchema, intro);
}

function annotate(form: JsonObject, schema: TSchema, intro: string): string {
  const document = new Document(form);
  describeNode(document.contents, schema);
  if (isMap(document.contents)) for (const { key } of document.contents.items.slice(1)) setApart(key);
  document.commentBefore = commentOf(intro);
  return document.toString({ lineWidth: 0 });
}

/** Puts the description of each key above it. The same keys of a second entry need no second description. */
function describeNode(node: unknown, schema: TSchema): void {
  if (isSeq(node)) describeNode(node.items[0], schema.items ?? {});
  if (!isMap(node) || schema.properties === undefined) return;
  for (const { key, value } of node.items) {
    if (!isScalar(key)) continue;
    const member = memberSchema(schema, String(key.value));
    if (member.description !== undefined) key.commentBefore = commentOf(member.description);
    describeNode(value, member);
  }
}

function setApart(key: unknown): void {
  if (isScalar(key)) key.spaceBefore = true;
}

function commentOf(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < maxColumns) lines.splice(-1, 1, `${last} ${word}`);
    else lines.push(` ${word}`);
  }
  return lines.join("\n");
}
