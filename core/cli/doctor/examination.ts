import { access, constants, stat } from "node:fs/promises";
import { connect as connectTcp, isIP } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { connect as connectTls } from "node:tls";
import { contentDigest } from "../../action/canonical-json.ts";
import { GatewayError } from "../../action/error.ts";
import type { UpstreamConfig, WitnessConfig } from "../../config/gateway-config.ts";
import { isLoopback } from "../../config/repetition.ts";
import { examineData } from "./data-folder.ts";
import { count, type Examine, type Finding, fail, ok, type Patient, warn } from "./finding.ts";
import { examineClock, examineDisk, examineOpenFiles, examineSync } from "./machine.ts";
import { examinePermissions } from "./permission.ts";
import { examinePorts } from "./port.ts";
import { examineExtensions, examineTrust } from "./trust.ts";

/** Who can reach the ports at all. Without keys the configuration is refused before this. */
export const examineExposure: Examine = async ({ config: { listen } }) => {
  const found = [];
  if (!isLoopback(listen.host)) {
    const mend = "put a proxy with TLS in front, as core/cli/deploy shows, and let only it reach this port";
    found.push(warn(`agents reach \`${listen.host}\` in plain HTTP: keys are readable on the way`, mend));
  }
  if (!isLoopback(listen.adminHost)) {
    const mend = "set `listen.admin_host` to 127.0.0.1, or keep the port off every public network";
    const text = `operators reach \`${listen.adminHost}\` in plain HTTP: whoever reads a key on the way can review`;
    found.push(
      isWildcard(listen.adminHost) ? fail(`${text}, from every network of this machine`, mend) : warn(text, mend),
    );
  }
  return found.length === 0 ? [ok("this machine alone reaches the ports")] : found;
};

function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** Whether everybody who has to can get in, and nobody else. */
export const examineKeys: Examine = async ({ config, env }) => {
  const { keys, source, mcpGateway } = config;
  if (keys.length === 0 && source === null) return [ok("two are made at the first start")];
  if (keys.length === 0) {
    return [fail("there is none: nobody can authenticate", "`gateway keys new` prints one, and its entry for `keys`")];
  }
  const found: Finding[] = [
    ok(`${count(keys.length, "key")} of ${count(new Set(keys.map(({ tenant }) => tenant)).size, "tenant")}`),
  ];
  for (const tenant of new Set(keys.map((key) => key.tenant))) {
    if (keys.some((key) => key.tenant === tenant && key.role !== "viewer")) continue;
    const mend = `\`gateway keys new --tenant ${tenant} --role operator\` prints one`;
    found.push(
      warn(
        `nobody can review what agents of tenant \`${tenant}\` ask for: no key of role \`operator\` or \`admin\``,
        mend,
      ),
    );
  }
  if (!mcpGateway.requireAuth) {
    found.push(
      warn("MCP needs no key: whoever reaches the port is an agent", "set `mcp_gateway.require_auth` to true"),
    );
  }
  const own = env.GATEWAY_API_KEY ?? "";
  if (own !== "" && !keys.some(({ keyHash }) => keyHash === contentDigest(own))) {
    found.push(warn("GATEWAY_API_KEY holds no key of this configuration", "set it to one of them, or leave it out"));
  }
  return found;
};

/** Whether the collector of traces and metrics can be connected to. */
export const examineCollector: Examine = async ({ config: { telemetry } }) => {
  if (telemetry.endpoint === null) return [ok("nobody is told of traces and metrics")];
  return [await examineHost("telemetry", telemetry.endpoint, warn)];
};

/** Whether those who are told of approvals can be connected to. */
export const examineWebhooks: Examine = async ({ config: { approvals } }) => {
  if (approvals.webhooks.length === 0) return [ok("nobody is told of approvals")];
  return Promise.all(approvals.webhooks.map(({ name, url }) => examineHost(name, url, warn)));
};

/** Whether each model provider that a route names can be connected to. Its key was read with the configuration. */
export const examineProviders: Examine = async ({ config: { providers, modelGateway } }) => {
  const steps = modelGateway.routes.flatMap((route) => [
    ...route.steps,
    ...(route.canary === null ? [] : [route.canary]),
  ]);
  const routed = new Set(steps.map(({ provider }) => provider));
  const asked = providers.filter(({ name }) => routed.has(name));
  if (asked.length === 0) return [ok("no route names one: models are not offered")];
  return Promise.all(
    asked.map(async (provider) =>
      provider.type === "mock"
        ? ok(`\`${provider.name}\` answers by itself`)
        : examineHost(provider.name, provider.baseUrl, warn),
    ),
  );
};

/** Whether each MCP server can be started, or connected to. None is started. */
export const examineUpstreams: Examine = async ({ config: { upstreams }, env }) => {
  if (upstreams.length === 0)
    return [warn("there is none: agents are offered nothing", "name an MCP server in `upstreams`")];
  return Promise.all(upstreams.map((upstream) => examineUpstream(upstream, env)));
};

async function examineUpstream(upstream: UpstreamConfig, env: NodeJS.ProcessEnv): Promise<Finding> {
  const { name } = upstream;
  if (upstream.transport !== "stdio") return examineHost(name, upstream.url, fail);
  const { command, cwd } = upstream;
  if (cwd !== undefined && !(await stat(cwd).catch(() => undefined))?.isDirectory()) {
    return fail(`\`${name}\`: its folder \`${cwd}\` is not there`, "make it, or mend its `cwd`");
  }
  const found = await findProgram(command, upstream.env.PATH ?? env.PATH ?? "");
  if (found !== undefined) return ok(`\`${name}\` is started by ${found}`);
  const place = command.includes("/") ? "is no program that this user may run" : "is nowhere in PATH";
  return fail(`\`${name}\`: \`${command}\` ${place}`, "install it, or mend its `command`");
}

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

/** Whether somebody else keeps where each chain stands, and is there. */
export const examineWitnesses: Examine = async ({ config: { evidence, dataDir } }) => {
  if (evidence.witnesses.length > 0)
    return Promise.all(evidence.witnesses.map((witness) => examineWitness(witness, dataDir)));
  const mend = "name one in `evidence.witnesses`: a folder on other storage is enough";
  return [warn("there is none: nobody notices when the whole data folder is replaced by an older copy", mend)];
};

async function examineWitness(witness: WitnessConfig, dataDir: string): Promise<Finding> {
  const { name } = witness;
  if (witness.type === "http") return examineHost(name, witness.url, fail);
  if (witness.type === "git") {
    const heads = [join(witness.repository, "HEAD"), join(witness.repository, ".git")];
    const isThere = (await Promise.all(heads.map((path) => stat(path).catch(() => undefined)))).some((found) => found);
    if (isThere) return ok(`\`${name}\` is a repository`);
    return fail(`\`${name}\`: \`${witness.repository}\` is no repository`, `\`git init --bare\` makes one`);
  }
  const [own, other] = await Promise.all([deviceOf(dataDir), deviceOf(witness.path)]);
  if (own !== other) return ok(`\`${name}\` lies on other storage`);
  const mend = "set its `path` to other storage: who replaces the one would replace both";
  return warn(`\`${name}\` lies on the disk of the data folder`, mend);
}

/** The disk of a folder, or of the closest above it that is there. */
async function deviceOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined && dirname(path) !== path ? deviceOf(dirname(path)) : (found?.dev ?? -1);
}

const deadlineMs = 3_000;

/** Words for what the system says; the code itself for others. */
const reasons: Readonly<Record<string, string>> = {
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the host's name cannot be looked up now",
  ECONNREFUSED: "nobody listens there",
  EHOSTUNREACH: "no way there",
  ENETUNREACH: "no way there",
  ECONNRESET: "it hangs up",
};

/** Why the host of a URL cannot be connected to, its certificate included; undefined where it can. Sends nothing. */
export function reachProblem(url: string): Promise<string | undefined> {
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const isTls = protocol === "https:";
  const place = { host, port: port === "" ? (isTls ? 443 : 80) : Number(port) };
  return new Promise((resolve) => {
    const socket = isTls
      ? connectTls({ ...place, ...(isIP(host) === 0 ? { servername: host } : {}) })
      : connectTcp(place);
    const end = (problem: string | undefined): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(problem);
    };
    const timer = setTimeout(() => end(`no answer within ${deadlineMs / 1_000} s`), deadlineMs);
    socket.once(isTls ? "secureConnect" : "connect", () => end(undefined));
    socket.once("error", ({ code, message }: NodeJS.ErrnoException) => end(reasons[code ?? ""] ?? code ?? message));
  });
}

/** Whether somebody is there at a URL; `doubt` makes the finding where nobody is. Of the URL it tells the host alone. */
async function examineHost(
  name: string,
  url: string,
  doubt: (text: string, mend: string) => Finding,
): Promise<Finding> {
  const { host } = new URL(url);
  const problem = await reachProblem(url);
  if (problem === undefined) return ok(`\`${name}\` is there, at ${host}`);
  return doubt(`\`${name}\` at ${host} cannot be reached: ${problem}`, "start it, or mend its URL or the way there");
}

/** Everything that can be examined once there is a configuration, in the order it is told. */
export const examinations: Readonly<Record<string, Examine>> = {
  ports: examinePorts,
  exposure: examineExposure,
  keys: examineKeys,
  permissions: examinePermissions,
  "open files": examineOpenFiles,
  clock: examineClock,
  disk: examineDisk,
  "disk sync": examineSync,
  data: examineData,
  extensions: examineExtensions,
  trust: examineTrust,
  upstreams: examineUpstreams,
  providers: examineProviders,
  webhooks: examineWebhooks,
  collector: examineCollector,
  witnesses: examineWitnesses,
};

/** A finding, and the check that made it. */
export interface Told extends Finding {
  readonly check: string;
}

const usualDeadlineMs = 30_000;

/** All of it, one check after the other. One that breaks, or does not come to an end in time, has failed. */
export async function examine(patient: Patient, deadlineMs: number = usualDeadlineMs): Promise<readonly Told[]> {
  const told: Told[] = [];
  for (const [check, look] of Object.entries(examinations)) {
    const found = await withDeadline(look(patient), deadlineMs).catch((cause) => [
      fail(`cannot be examined: ${GatewayError.from(cause).message}`, "mend that first"),
    ]);
    told.push(...found.map((finding) => ({ check, ...finding })));
  }
  return told;
}

async function withDeadline<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${deadlineMs} ms`)), deadlineMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
