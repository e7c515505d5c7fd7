import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { deepFreeze } from "../action/json.ts";
import { checkDocument, memberSchema } from "./check.ts";
import { describeFileError, readDocument } from "./document.ts";
import { buildEffects } from "./effect-schema.ts";
import { buildStatements } from "./fact-schema.ts";
import { FaultList } from "./fault.ts";
import {
  type FileDraft,
  type FileForm,
  fileSchema,
  type ProviderForm,
  type RouteForm,
  type UpstreamForm,
  type WitnessForm,
} from "./file-schema.ts";
import type {
  Camel,
  GatewayConfig,
  HttpEndpoint,
  HttpProvider,
  MockProvider,
  ModelRoute,
  StdioEndpoint,
  WitnessPlace,
} from "./gateway-config.ts";
import { isLoopback } from "./repetition.ts";
import { checkRules } from "./rule.ts";
import { readSecrets, type Secrets, type SourcedValues } from "./secret.ts";
import type { TrustFile } from "./trust-file.ts";

interface LoadOptions {
  /** Makes a missing folder of a pack, plugin or engine a fault; without it, loading it fails later. */
  readonly requireFolders?: boolean;
}

/**
 * Reads, checks and freezes one configuration file; secrets come from `env`.
 * Throws CONFIG_INVALID with every fault of the file, one `file:line:column: path: message` a line, and as
 * `data.faults`. No fault contains the value of a secret.
 */
export async function loadConfig(
  path: string,
  env: NodeJS.ProcessEnv,
  options: LoadOptions = {},
): Promise<GatewayConfig> {
  const { form, secrets } = await readForm(path, env, options);
  const source = resolve(path);
  const { trust_policy: trust } = form.extensions;
  const trustFile = trust === null ? null : await readTrustFile(resolve(dirname(source), trust));
  return buildConfig(form, secrets, source, trustFile);
}

/** The checked file in its own spelling, and the secrets from the environment. Throws as `loadConfig` does. */
export async function readForm(
  path: string,
  env: NodeJS.ProcessEnv,
  { requireFolders = false }: LoadOptions = {},
): Promise<{ form: FileForm; secrets: Secrets }> {
  const faults = new FaultList(path);
  const document = await readDocument(path, faults);
  if (document === undefined) return faults.throwAll();
  const draft = checkDocument(document, fileSchema, faults);
  const secrets = readSecrets(draft, env, faults);
  checkRules(draft, secrets, faults);
  if (requireFolders) await checkFolders(draft?.policy, dirname(resolve(path)), faults);
  faults.throwIfAny();
  // INVARIANT: without a fault the draft has no holes.
  return { form: draft as FileForm, secrets };
}

async function checkFolders(policy: FileDraft["policy"], folder: string, faults: FaultList): Promise<void> {
  for (const section of ["packs", "plugins", "engines"] as const) {
    for (const [index, entry] of (policy?.[section] ?? []).entries()) {
      if (entry?.path === undefined) continue;
      const path = resolve(folder, entry.path);
      const got = await stat(path).then((found) => (found.isDirectory() ? undefined : "a file"), describeFileError);
      if (got !== undefined) faults.add(`policy.${section}[${index}].path`, `expected a folder, got ${got}: ${path}`);
    }
  }
}

/** Loads the reader with the file: without one, a start needs no part of Sigstore. */
async function readTrustFile(path: string): Promise<TrustFile> {
  const { loadTrustFile } = await import("./trust-file.ts");
  return loadTrustFile(path);
}

/** The configuration in this project's own spelling, deep-frozen. Relative paths start at the folder of `source`. */
export function buildConfig(form: FileForm, secrets: Secrets, source: string, trust: TrustFile | null): GatewayConfig {
  const folder = dirname(source);
  const config = toCamel(form, fileSchema);
  const { mcpGateway: mcp, policy, extensions, sessions, tickets, evidence, approvals, resilience, state } = config;
  const inFolder = <T extends { readonly path: string }>(entry: T): T => ({
    ...entry,
    path: resolve(folder, entry.path),
  });
  const console = buildConsole(config.console, secrets);
  return deepFreeze<GatewayConfig>({
    ...config,
    source,
    dataDir: resolve(folder, config.dataDir),
    state: { ...state, mark: state.mark === null ? null : resolve(folder, state.mark) },
    keys: form.keys.map(({ id, tenant, role }, at) => ({
      id,
      tenant,
      role,
      keyHash: given(secrets.keyHashes[at], id),
    })),
    oauth: buildOauth(config.oauth),
    console,
    // A tenant left over from a trial without keys must not let anyone in.
    mcpGateway: { ...mcp, anonymousTenant: mcp.requireAuth ? null : mcp.anonymousTenant },
    upstreams: form.upstreams.map((one, at) => buildUpstream(one, given(secrets.upstreams[at], one.name), folder)),
    effects: buildEffects(form.effects),
    providers: form.providers.map((one, at) => buildProvider(one, secrets.providers[at])),
    modelGateway: {
      ...config.modelGateway,
      tools: { ...form.model_gateway.tools, facts: buildStatements(form.model_gateway.tools.facts) },
      routes: form.model_gateway.routes.map(buildRoute),
    },
    policy: {
      ...policy,
      packs: policy.packs.map(inFolder),
      plugins: policy.plugins.map(inFolder),
      engines: policy.engines.map(({ tokenEnv, ...engine }, at) => ({
        ...inFolder(engine),
        token: secrets.engines[at] ?? null,
        tokenVariable: tokenEnv,
      })),
    },
    extensions: {
      strict: extensions.strict,
      trustPolicy: trust?.policy ?? null,
      trustFiles: trust?.files ?? [],
    },
    sessions: buildSessions(sessions),
    tickets: { ...tickets, defaultTtlSeconds: Math.min(tickets.defaultTtlSeconds, tickets.maxTtlSeconds) },
    evidence: {
      ...evidence,
      witnesses: form.evidence.witnesses.map((one, at) =>
        buildWitness(one, given(secrets.witnesses[at], one.name), folder),
      ),
    },
    approvals: buildApprovals(approvals, ownReviewUrl(config.listen, console.publicUrl), secrets),
    hooks: {
      capabilities: config.hooks.capabilities,
      dialects: config.hooks.dialects,
      maxWaitMs: config.hooks.maxWaitSeconds * 1_000,
    },
    resilience: {
      ...resilience,
      tenant: resilience.tenant ?? onlyTenant(form.keys),
      backupDir: resolve(folder, resilience.backupDir),
    },
    telemetry: buildTelemetry(config.telemetry, secrets.telemetry),
    store: buildStore(config.store, secrets.store),
    reports: buildReports(config.reports, secrets.reports),
  });
}

function buildStore(
  { engine, urlEnv, secretEnv, replicaPort, leaseMs }: Camel<FileForm["store"]>,
  { url, secret, host }: Secrets["store"],
): GatewayConfig["store"] {
  if (engine === "leveldb") return null;
  return {
    engine,
    url: given(url, "store.url_env"),
    urlVariable: given(urlEnv, "store.url_env"),
    secret: given(secret, "store.secret_env"),
    secretVariable: given(secretEnv, "store.secret_env"),
    host,
    replicaPort: given(replicaPort, "store.replica_port"),
    leaseMs: given(leaseMs, "store.lease_ms"),
  };
}

function buildReports({ urlEnv }: Camel<FileForm["reports"]>, url: string | null): GatewayConfig["reports"] {
  return urlEnv === null ? null : { url: given(url, "reports.url_env"), urlVariable: urlEnv };
}

/** Renames the keys that the schema names; those that the operator chose stay. */
function toCamel<T>(value: T, schema: TSchema): Camel<T> {
  return camelized(value, schema) as Camel<T>;
}

function camelized(value: unknown, schema: TSchema): unknown {
  if (Array.isArray(value)) return value.map((item) => camelized(item, schema.items));
  if (typeof value !== "object" || value === null || schema.properties === undefined) return value;
  const members = Object.entries(value).map(([key, member]) => [
    key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    camelized(member, memberSchema(schema, key)),
  ]);
  return Object.fromEntries(members);
}

/** A value that the schema or `readSecrets` has ensured. */
function given<T>(value: T | null | undefined, name: string): T {
  if (value === undefined || value === null) throw new TypeError(`buildConfig: expected a value for \`${name}\``);
  return value;
}

/** The tenant that every key belongs to; null where there are several, or none. */
function onlyTenant(keys: FileForm["keys"]): string | null {
  const [tenant = null, ...others] = new Set(keys.map((key) => key.tenant));
  return others.length === 0 ? tenant : null;
}

function buildUpstream(
  form: UpstreamForm,
  { values, origins }: SourcedValues,
  folder: string,
): GatewayConfig["upstreams"][number] {
  const { transport, command, args, cwd, env, envFrom, runAs, url, headers, headersEnv, facts, ...settings } = toCamel(
    form,
    fileSchema.properties.upstreams.items,
  );
  return { ...buildEndpoint(form, values, folder), ...settings, facts: buildStatements(form.facts), origins };
}

function buildEndpoint(
  form: UpstreamForm,
  values: Readonly<Record<string, string>>,
  folder: string,
): StdioEndpoint | HttpEndpoint {
  if (form.transport !== "stdio") return { transport: form.transport, url: given(form.url, "url"), headers: values };
  const command = given(form.command, "command");
  return {
    transport: "stdio",
    // A bare name is looked for in PATH; a path must not depend on where the gateway was started.
    command: command.includes("/") ? resolve(folder, command) : command,
    args: form.args ?? [],
    ...(form.cwd === null ? {} : { cwd: resolve(folder, form.cwd) }),
    ...(form.run_as === null ? {} : { runAs: form.run_as }),
    env: values,
  };
}

function buildProvider(form: ProviderForm, apiKey: string | null | undefined): GatewayConfig["providers"][number] {
  const { type, baseUrl, apiKeyEnv, ...settings } = toCamel(form, fileSchema.properties.providers.items);
  const endpoint: HttpProvider | MockProvider =
    type === "mock" ? { type } : { type, baseUrl: given(baseUrl, "base_url"), apiKey: apiKey ?? null };
  return { ...endpoint, ...settings, keyVariable: apiKeyEnv };
}

function buildRoute({ model, providers, fallback, canary }: RouteForm): ModelRoute {
  return {
    model,
    steps: providers.map((step) => ({ provider: step.name, model: step.model ?? model, weight: step.weight })),
    fallback,
    canary:
      canary.name === null ? null : { provider: canary.name, model: canary.model ?? model, percent: canary.percent },
  };
}

function buildOauth(form: Camel<FileForm["oauth"]>): GatewayConfig["oauth"] {
  const { issuer, audience, jwksCacheSeconds, jwksRefetchSeconds, ...rest } = form;
  if (issuer === null) return null;
  return {
    ...rest,
    issuer,
    audience: given(audience, "audience"),
    jwksCacheMs: jwksCacheSeconds * 1_000,
    jwksRefetchMs: jwksRefetchSeconds * 1_000,
  };
}

function buildConsole(
  { publicUrl, recentSignInMinutes, oidc }: Camel<FileForm["console"]>,
  { console: clientSecret }: Secrets,
): GatewayConfig["console"] {
  const { issuer, clientId, clientSecretEnv, ...rest } = oidc;
  return {
    publicUrl: publicUrl === null ? null : new URL(publicUrl).origin,
    recentSignInMs: recentSignInMinutes * 60_000,
    oidc:
      issuer === null
        ? null
        : {
            ...rest,
            issuer,
            clientId: given(clientId, "client_id"),
            clientSecret: clientSecret ?? null,
            secretVariable: clientSecretEnv,
          },
  };
}

function buildSessions(form: Camel<FileForm["sessions"]>): GatewayConfig["sessions"] {
  const { reviewFlood, risk, idleRetentionDays, ...rest } = form;
  return {
    ...rest,
    reviewFlood: { reviews: reviewFlood.reviews, windowMs: reviewFlood.windowSeconds * 1_000 },
    risk: { killAt: risk.killAt, windowMs: risk.windowSeconds * 1_000, mode: risk.mode },
    idleRetentionMs: idleRetentionDays * 86_400_000,
  };
}

/** Returns the page of the console where an approval is reviewed; null where it is at no address that is known before the start. */
export function ownReviewUrl(
  { adminHost, metricsPort }: Pick<GatewayConfig["listen"], "adminHost" | "metricsPort">,
  publicUrl: string | null,
): string | null {
  const host = adminHost.includes(":") ? `[${adminHost}]` : adminHost;
  const origin = publicUrl ?? (metricsPort !== 0 && isLoopback(adminHost) ? `http://${host}:${metricsPort}` : null);
  return origin === null ? null : `${origin}/#/approvals/{id}`;
}

function buildApprovals(
  form: Camel<FileForm["approvals"]>,
  ownPage: string | null,
  secrets: Secrets,
): GatewayConfig["approvals"] {
  const { reviewUrl, reviewSeconds, useSeconds, holdSeconds, maxPending, webhooks, ...rest } = form;
  return {
    ...rest,
    reviewUrl: reviewUrl ?? ownPage,
    reviewMs: reviewSeconds * 1_000,
    useMs: useSeconds * 1_000,
    holdMs: holdSeconds * 1_000,
    maxLive: maxPending,
    webhooks: webhooks.map(({ secretsEnv, ...webhook }, at) => ({
      ...webhook,
      secrets: given(secrets.webhooks[at], webhook.name),
      secretVariables: secretsEnv,
    })),
  };
}

function buildWitness(
  form: WitnessForm,
  { values, origins }: SourcedValues,
  folder: string,
): GatewayConfig["evidence"]["witnesses"][number] {
  return { ...buildPlace(form, values, folder), name: form.name, intervalMs: form.interval_ms, origins };
}

function buildPlace(form: WitnessForm, headers: Readonly<Record<string, string>>, folder: string): WitnessPlace {
  switch (form.type) {
    case "file":
      return { type: "file", path: resolve(folder, given(form.path, "path")) };
    case "git":
      return { type: "git", repository: resolve(folder, given(form.repository, "repository")) };
    case "http":
      return { type: "http", url: given(form.url, "url"), headers };
  }
}

function buildTelemetry(
  { headersEnv: _, ...rest }: Camel<FileForm["telemetry"]>,
  { values, origins }: SourcedValues,
): GatewayConfig["telemetry"] {
  return { ...rest, headers: values, origins };
}
