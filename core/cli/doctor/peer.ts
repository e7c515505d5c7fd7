import { access, constants, stat } from "node:fs/promises";
import { isIP } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { withoutBrackets } from "../../action/parsed-url.ts";
import type { GatewayConfig, UpstreamConfig, WitnessConfig } from "../../config/gateway-config.ts";
import { isLoopback } from "../../config/repetition.ts";
import { EgressError, EgressGuard } from "../../egress/egress-guard.ts";
import { type DoctorCheck, type DoctorFinding, type DoctorTarget, fail, ok, warn } from "./finding.ts";

/** Checks the connection to the collector of traces and metrics. */
export const checkCollector: DoctorCheck = async ({ config }) => {
  const { telemetry } = config;
  if (telemetry.endpoint === null) return [ok("no telemetry endpoint is configured")];
  return [await checkHost("telemetry", telemetry.endpoint, config, warn)];
};

/** Checks the connection to each webhook receiver. */
export const checkWebhooks: DoctorCheck = async ({ config }) => {
  const { approvals } = config;
  if (approvals.webhooks.length === 0) return [ok("no webhook is configured")];
  const found = await Promise.all(approvals.webhooks.map(({ name, url }) => checkHost(name, url, config, warn)));
  const page = approvals.reviewUrl;
  if (page !== null && !isLoopback(withoutBrackets(new URL(page).hostname))) return found;
  const fix = "set `console.public_url`, or `approvals.review_url` to the page where people review";
  const link = page === null ? "no link" : "a link that leads to the console on this machine alone";
  return [...found, warn(`notices carry ${link}: whoever reads one elsewhere has to look the approval up`, fix)];
};

/** Checks the connection to each model provider of a route. Keys were read with the configuration. */
export const checkModelProviders: DoctorCheck = async ({ config }) => {
  const { providers, modelGateway } = config;
  const steps = modelGateway.routes.flatMap((route) => [
    ...route.steps,
    ...(route.canary === null ? [] : [route.canary]),
  ]);
  const routed = new Set(steps.map(({ provider }) => provider));
  const used = providers.filter(({ name }) => routed.has(name));
  if (used.length === 0) return [ok("no route names one: no model is offered")];
  return Promise.all(
    used.map(async (provider) =>
      provider.type === "mock"
        ? ok(`\`${provider.name}\` is built in`)
        : checkHost(provider.name, provider.baseUrl, config, warn),
    ),
  );
};

/** Checks the connection to where the signing keys of access tokens are: the issuer, or the address that is configured. */
export const checkIssuer: DoctorCheck = async ({ config }) => {
  const { oauth } = config;
  if (oauth === null) return [ok("no OAuth is configured: agents use keys")];
  if (oauth.jwksUri !== null) return [await checkHost("oauth.jwks_uri", oauth.jwksUri, config, fail)];
  return [await checkHost("oauth.issuer", oauth.issuer, config, fail)];
};

/** Checks that each MCP server can be connected to, or its program run, and is up where the gateway runs. Starts none. */
export const checkUpstreams: DoctorCheck = async (target) => {
  const { upstreams } = target.config;
  if (upstreams.length === 0)
    return [warn("none is configured: agents are offered no tool", "name an MCP server in `upstreams`")];
  const [reached, running] = await Promise.all([
    Promise.all(upstreams.map((upstream) => checkUpstream(upstream, target))),
    checkRunningUpstreams(target),
  ]);
  return [...reached, ...running];
};

/** Reads from the metrics of a running gateway how many of its MCP servers are not up. */
async function checkRunningUpstreams({ config: { listen }, holder }: DoctorTarget): Promise<readonly DoctorFinding[]> {
  if (holder === null || holder === undefined || listen.metricsPort === 0) return [];
  const host = isIP(listen.adminHost) === 6 ? `[${listen.adminHost}]` : listen.adminHost;
  const lines = (await readMetrics(`http://${host}:${listen.metricsPort}/metrics`)).split("\n");
  const count = (state: string): number => {
    const series = `gateway_upstreams{state="${state}"} `;
    return Number(lines.find((line) => line.startsWith(series))?.slice(series.length) ?? 0);
  };
  const fix = "`gateway upstreams list` says which, and why";
  return (["starting", "down"] as const).flatMap((state) =>
    count(state) === 0 ? [] : [warn(`${count(state)} of the running gateway: ${state}`, fix)],
  );
}

/** Returns the text of a metrics port; empty where it does not answer. */
async function readMetrics(url: string): Promise<string> {
  try {
    const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(connectTimeoutMs) });
    return response.ok ? await response.text() : "";
  } catch {
    return ""; // the check of the ports reports it
  }
}

async function checkUpstream(upstream: UpstreamConfig, { config, env }: DoctorTarget): Promise<DoctorFinding> {
  const { name } = upstream;
  if (upstream.transport !== "stdio") return checkHost(name, upstream.url, config, fail);
  const { command, cwd } = upstream;
  if (cwd !== undefined && !(await stat(cwd).catch(() => undefined))?.isDirectory()) {
    return fail(`\`${name}\`: its folder \`${cwd}\` does not exist`, "create it, or correct its `cwd`");
  }
  const found = await findProgram(command, upstream.env.PATH ?? env.PATH ?? "");
  if (found !== undefined) return ok(`\`${name}\` runs ${found}`);
  const fault = command.includes("/") ? "is no program that this user may run" : "is not in PATH";
  return fail(`\`${name}\`: \`${command}\` ${fault}`, "install it, or correct its `command`");
}

/** Checks that servers over stdio run as another user than the gateway, whose keys they could read. */
export const checkProcessUser: DoctorCheck = async ({ config: { upstreams, state, dataDir } }) => {
  const own = upstreams.filter((upstream) => upstream.transport === "stdio" && upstream.runAs === undefined);
  if (own.length === 0 || !state.enabled) return [ok("no MCP server runs as the gateway's own user, beside its keys")];
  const names = own.map(({ name }) => `\`${name}\``).join(", ");
  const fix = "set `run_as`, or run it by itself and reach it over HTTP";
  return [warn(`${names} over stdio: the gateway's own user reads the keys in ${join(dataDir, "keys")}`, fix)];
};

async function findProgram(command: string, path: string): Promise<string | undefined> {
  const places = command.includes("/") ? [command] : path.split(delimiter).map((folder) => join(folder, command));
  for (const place of places) if (await isProgram(place)) return place;
  return undefined;
}

async function isProgram(path: string): Promise<boolean> {
  if (!(await stat(path).catch(() => undefined))?.isFile()) return false;
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Checks that each witness is reachable, and on other storage than the data folder. */
export const checkWitnesses: DoctorCheck = async ({ config }) => {
  const { evidence } = config;
  if (evidence.witnesses.length > 0)
    return Promise.all(evidence.witnesses.map((witness) => checkWitness(witness, config)));
  const fix = "name one in `evidence.witnesses`: a folder on other storage is enough";
  return [warn("none is configured: replacing the whole data folder by an older copy goes unnoticed", fix)];
};

async function checkWitness(witness: WitnessConfig, config: GatewayConfig): Promise<DoctorFinding> {
  const { name } = witness;
  if (witness.type === "http") return checkHost(name, witness.url, config, fail);
  if (witness.type === "git") {
    const heads = [join(witness.repository, "HEAD"), join(witness.repository, ".git")];
    const exists = (await Promise.all(heads.map((path) => stat(path).catch(() => undefined)))).some((found) => found);
    if (exists) return ok(`\`${name}\` is a repository`);
    return fail(`\`${name}\`: \`${witness.repository}\` is no repository`, `\`git init --bare\` creates one`);
  }
  const [own, other] = await Promise.all([deviceOf(config.dataDir), deviceOf(witness.path)]);
  if (own !== other) return ok(`\`${name}\` is on other storage`);
  const fix = "set its `path` to other storage: both could be replaced at once";
  return warn(`\`${name}\` is on the disk of the data folder`, fix);
}

/** Returns the device of a folder, or of its nearest existing parent. */
async function deviceOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined && dirname(path) !== path ? deviceOf(dirname(path)) : (found?.dev ?? -1);
}

const connectTimeoutMs = 3_000;

/** Texts for error codes of the system; others are printed as they are. */
const reasons: Readonly<Record<string, string>> = {
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the host name cannot be resolved now",
  ECONNREFUSED: "connection refused",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the network",
  ECONNRESET: "connection reset",
  UND_ERR_CONNECT_TIMEOUT: `no answer within ${connectTimeoutMs / 1_000} s`,
};

/** Returns why the host of a URL cannot be connected to, its certificate included; undefined where it can. Sends nothing. */
export function reachProblem(url: string, egress: EgressGuard): Promise<string | undefined> {
  const target = new URL(url);
  const { host, hostname, protocol, port } = target;
  const connect = egress.connector(target, connectTimeoutMs);
  return new Promise((resolve) => {
    connect({ host, hostname: withoutBrackets(hostname), protocol, port }, (error, socket) => {
      socket?.destroy();
      resolve(error === null ? undefined : problemOf(error));
    });
  });
}

function problemOf(error: NodeJS.ErrnoException): string {
  if (error instanceof EgressError) return error.message;
  return reasons[error.code ?? ""] ?? error.code ?? error.message;
}

/** The way out that a gateway with this configuration takes. */
function egressOf({ egress, listen }: GatewayConfig): EgressGuard {
  const guard = new EgressGuard(egress);
  for (const port of [listen.gatewayPort, listen.adminPort, listen.metricsPort]) if (port !== 0) guard.claimPort(port);
  return guard;
}

/** Checks the connection to a URL; `unreachable` makes the finding where it fails. Prints only the host of the URL. */
export async function checkHost(
  name: string,
  url: string,
  config: GatewayConfig,
  unreachable: (text: string, fix: string) => DoctorFinding,
): Promise<DoctorFinding> {
  const { host } = new URL(url);
  const problem = await reachProblem(url, egressOf(config));
  if (problem === undefined) return ok(`\`${name}\` at ${host} is reachable`);
  return unreachable(
    `\`${name}\` at ${host} cannot be reached: ${problem}`,
    "start it, or correct its URL or the network",
  );
}
