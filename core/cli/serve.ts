import { resolve } from "node:path";
import { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import { Gateway, type GatewayPorts } from "../compose/gateway.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { loadConfig } from "../config/load.ts";
import { crashOf, type Log, openLog } from "../observe/log.ts";
import { openLocalMode, takeLocalOptions } from "./local-mode.ts";
import { TreeWatch } from "./tree-watch.ts";

interface ServeOptions {
  readonly config?: string;
  readonly data?: string;
  readonly port?: number;
  readonly json?: true;
}

/** `gateway serve`: runs until SIGINT or SIGTERM; SIGHUP and file changes reload packs and keys. */
export function serveCommand(): Command {
  const command = new Command("serve")
    .description("run the gateway; without --config in local mode: the demo upstream, the shipped packs, two made keys")
    .option("-c, --config <file>", "configuration file (gateway.yaml)");
  return takeLocalOptions(command)
    .option("--json", "say that it is ready, and log, in JSON at a terminal too")
    .action(serve);
}

async function serve(options: ServeOptions): Promise<void> {
  const config =
    options.config === undefined ? await openLocal(options) : await loadConfig(resolve(options.config), process.env);
  const log = openLog(config.log.level, isForPerson(process.stderr, options));
  process.on("uncaughtException", (cause) => endWith(cause, log));
  const opening = Gateway.open(config, log);
  // Before anything is read: what changes while it opens is taken up once it is open.
  const stopWatching = watchConfiguration(config, log, () =>
    opening.then(
      (opened) => reload(opened, config, log),
      () => undefined,
    ),
  );
  const gateway = await opening.catch((cause: unknown) => {
    stopWatching();
    throw cause;
  });
  const { ports } = gateway;
  // Before anybody can know that it runs: a signal sent at once must stop it, not end it.
  const stopped = stopSignal();
  process.stdout.write(isForPerson(process.stdout, options) ? readyText(config.listen.host, ports) : readyLine(ports));
  await stopped;
  stopWatching();
  log.info("stopping: what is in flight may finish");
  await gateway.close();
}

function isForPerson({ isTTY }: NodeJS.WriteStream, { json }: ServeOptions): boolean {
  return isTTY === true && json === undefined;
}

async function openLocal({ data, port }: ServeOptions): Promise<GatewayConfig> {
  const { config, keys } = await openLocalMode(resolve(data ?? "data"), port);
  process.stderr.write("gateway: local mode, tenant `local`\n");
  for (const { id, role, path, made } of keys) {
    const told = made === null ? `the key is in ${path}` : `made the key ${made}, kept in ${path}`;
    process.stderr.write(`gateway: for the ${id}, role \`${role}\`: ${told}\n`);
  }
  return config;
}

async function reload(gateway: Gateway, started: GatewayConfig, log: Log): Promise<void> {
  try {
    const config = started.source === null ? started : await loadConfig(started.source, process.env);
    await gateway.reload(config);
    log.info("reloaded packs and keys");
  } catch (cause) {
    const { code, message } = GatewayError.from(cause);
    log.error({ code, detail: message }, "reload refused: the last good packs and keys stay");
  }
}

/** What is in flight is not known any more to be as it should: the next start records its outcome as unknown. */
function endWith(cause: unknown, log: Log): never {
  log.error(crashOf(cause), "ended by an error that nobody caught");
  process.exit(1);
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
}

/** The line on standard output that tells a program which ports are open. Its members never change meaning. */
function readyLine({ gatewayPort, adminPort, metricsPort }: GatewayPorts): string {
  const ready = { event: "ready", gateway_port: gatewayPort, admin_port: adminPort, metrics_port: metricsPort };
  return `${JSON.stringify(ready)}\n`;
}

/** The same for a person at a terminal. */
function readyText(host: string, { gatewayPort, adminPort, metricsPort }: GatewayPorts): string {
  const at = host.includes(":") ? `http://[${host}]` : `http://${host}`;
  return [
    "gateway: ready; Ctrl-C stops it",
    `  agents     ${at}:${gatewayPort}/mcp`,
    `  operators  ${at}:${adminPort}/admin/v1/`,
    `  metrics    ${at}:${metricsPort}/metrics`,
    "",
  ].join("\n");
}

/** Editors write a file in several steps; a reload waits until they are done, but not for ever. */
const settleMs = 200;
const maxWaitMs = 2_000;

/**
 * Calls `reload` at once on SIGHUP, and soon after the configuration file or a pack changed; never twice at a time.
 * Returns the function that stops it.
 */
function watchConfiguration(config: GatewayConfig, log: Log, reload: () => Promise<void>): () => void {
  let timer: NodeJS.Timeout | undefined;
  let changedMs: number | undefined;
  let running: Promise<void> = Promise.resolve();
  const now = (): void => {
    clearTimeout(timer);
    changedMs = undefined;
    tree.refresh(); // before the reload reads: what changes after this is heard of again
    running = running.then(reload);
  };
  const soon = (): void => {
    clearTimeout(timer);
    changedMs ??= performance.now();
    timer = setTimeout(now, Math.max(0, Math.min(settleMs, changedMs + maxWaitMs - performance.now())));
  };
  const tree = new TreeWatch({
    paths: [
      ...[...config.policy.packs, ...config.policy.plugins].map(({ path }) => path),
      ...config.extensions.trustFiles,
      ...(config.source === null ? [] : [config.source]),
    ],
    onChange: soon,
    onBlind: (path) => log.warn({ path }, "folder cannot be watched: send SIGHUP after a change"),
  });
  process.on("SIGHUP", now);
  return () => {
    clearTimeout(timer);
    process.off("SIGHUP", now);
    tree.close();
  };
}
