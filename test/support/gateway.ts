import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, isAbsolute, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { hostGateway, stoppedGateway } from "./gateway-host.ts";
import { awaitReady } from "./ready-line.ts";
import { canBeReplicated, startReplicas } from "./replicated-gateway.ts";

export interface GatewayOptions {
  /**
   * Text of `gateway.yaml`. Written into a fresh folder, which is also the working directory, so relative paths
   * name what `files` holds.
   */
  readonly config: string;
  /** Files beside the configuration: relative path to text. */
  readonly files?: Readonly<Record<string, string>>;
  /** Added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** A folder of an earlier gateway, to start again on the same state. It is then the caller's to remove. */
  readonly folder?: string;
  /** A command that runs the gateway as its arguments say, in its own process. */
  readonly launcher?: readonly string[];
  /** The gateway of another build, as a path to its `core/cli/main.js`. */
  readonly program?: string;
  /** True for a process that has served no other gateway: where its memory, its handles or its end are measured. */
  readonly ownProcess?: boolean;
  /** True where the test reads the data folder or edits what lies beside it: one gateway, also with TEST_REPLICAS. */
  readonly alone?: boolean;
  /** True: one key may spend what it may by default, or by `config`. Else everything, as one key does in most tests. */
  readonly limitsShares?: boolean;
  /** The address at which its ports are reached; 127.0.0.1 unless told. */
  readonly host?: string;
  /** How long the gateway may take to say it is ready; 20 s unless told. */
  readonly deadlineMs?: number;
}

/** A gateway process of the built program, listening on ports the system chose. */
export interface RunningGateway {
  /** `http://<host>:<port>` of the gateway port, without a trailing slash; the other two likewise. */
  readonly url: string;
  readonly adminUrl: string;
  readonly metricsUrl: string;
  /** Where its configuration lies and it runs. */
  readonly folder: string;
  readonly process: ChildProcess;
  /** Everything it wrote so far. */
  stdout(): string;
  stderr(): string;
  /** SIGTERM, then the exit code; SIGKILL and an error after a minute. Removes the folder unless the caller gave it. */
  stop(): Promise<number>;
  /** SIGKILL to the whole process group, its stdio upstreams included. The folder stays: that is the point. */
  kill9(): Promise<void>;
}

const ownProgram = fileURLToPath(new URL("../../core/cli/main.js", import.meta.url));
const stopMs = 60_000;

/**
 * Starts the gateway beside this build (`core/cli/main.js serve --config …`) and waits for its ready line.
 * Throws with the end of its stderr when it exits first or stays silent; nothing is left behind then.
 */
export async function startGateway(options: GatewayOptions): Promise<RunningGateway> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "gateway-test-")));
  const owned = options.folder === undefined;
  try {
    if (isReplicated(options)) return await startReplicas(replicas, folder, owned, options, startOne);
    return await startOne(folder, owned, options);
  } catch (error) {
    if (owned) await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** `TEST_REPLICAS=3`: what a test asks for are three replicas on a database, which answer as one gateway. */
const replicas = Number(process.env.TEST_REPLICAS ?? 1);

/** False where the process itself is what a test is about. */
function isReplicated({ config, alone, ownProcess, launcher, program, env = {} }: GatewayOptions): boolean {
  const isOne =
    [alone, ownProcess].includes(true) || [launcher, program, env.LD_PRELOAD].some((each) => each !== undefined);
  return replicas > 1 && !isOne && canBeReplicated(config);
}

async function startOne(folder: string, owned: boolean, options: GatewayOptions): Promise<RunningGateway> {
  await writeFiles(folder, { ...options.files, "gateway.yaml": configOf(options) });
  return launch(folder, owned, options);
}

const unlimited =
  "key_calls_per_minute: 1000000000, tenant_calls_per_minute: 1000000000, key_cpu_percent: 100, tenant_cpu_percent: 100, key_share_percent: 100, tenant_share_percent: 100";

/** The configuration that is written: unlimited already where a test passes on what it read from an earlier folder. */
function configOf({ config, limitsShares = false }: GatewayOptions): string {
  if (limitsShares || config.includes(unlimited)) return config;
  if (/^limits: \{/m.test(config)) return config.replace(/^limits: \{/m, `limits: { ${unlimited},`);
  return `${config}\nlimits: { ${unlimited} }\n`;
}

async function launch(folder: string, owned: boolean, options: GatewayOptions): Promise<RunningGateway> {
  const args = ["serve", "--config", join(folder, "gateway.yaml")];
  const env = { ...process.env, ...options.env };
  const isOwn = needsOwnProcess(options);
  const child = isOwn ? spawnGateway(args, folder, env, options) : hostGateway(args, folder, env);
  const stopped = isOwn ? undefined : stoppedGateway(child);
  const ready = await awaitReady(child, { event: "ready" }, options.deadlineMs ?? 60_000, stopped);
  const url = (field: string): string => `http://${options.host ?? "127.0.0.1"}:${ready.port(field)}`;
  return {
    url: url("gateway_port"),
    adminUrl: url("admin_port"),
    metricsUrl: url("metrics_port"),
    folder,
    process: child,
    stdout: ready.stdout,
    stderr: ready.stderr,
    stop: async () => {
      const code = await ready.stop("SIGTERM", stopMs);
      if (owned) await rm(folder, { recursive: true, force: true });
      return code;
    },
    kill9: async () => {
      await ready.stop("SIGKILL", stopMs);
    },
  };
}

/** What Node or the linker reads from its environment, it reads once. */
function needsOwnProcess({ ownProcess, launcher, program, env = {} }: GatewayOptions): boolean {
  if (ownProcess === true || launcher !== undefined || program !== undefined) return true;
  return "NODE_OPTIONS" in env || "LD_PRELOAD" in env;
}

function spawnGateway(
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  { launcher = [], program = ownProgram }: GatewayOptions,
): ChildProcess {
  const [first = "", ...rest] = [...launcher, process.execPath, program, ...args];
  return spawn(first, rest, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
}

async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    if (isAbsolute(path) || normalize(path).startsWith("..")) {
      throw new TypeError(`startGateway: expected a path inside the folder, got \`${path}\``);
    }
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}
