import { resolve } from "node:path";
import { GatewayError } from "../action/error.ts";
import { Gateway, type GatewayPorts } from "../compose/gateway.ts";
import type { GatewayConfig, StoreConfig } from "../config/gateway-config.ts";
import { loadConfig } from "../config/load.ts";
import { crashOf, type Log, openLog } from "../observe/log.ts";
import type { Ownership } from "../replica/replica.ts";
import { pauseOptimizing, resumeOptimizing } from "../store/optimizer.ts";
import { openLocalMode } from "./local-mode.ts";
import { quotePosix, say } from "./print.ts";
import { TreeWatch } from "./tree-watch.ts";

interface ServeOptions {
  readonly config?: string;
  readonly data?: string;
  readonly port?: number;
  readonly json?: true;
}

/** A start that takes longer tests many packs or reads much, and gains from optimized code. */
const maxStartMs = 30_000;

/** `gateway serve`: runs until SIGINT or SIGTERM; SIGHUP and file changes reload packs and keys. */
export async function serve(options: ServeOptions): Promise<void> {
  pauseOptimizing(maxStartMs);
  const config =
    options.config === undefined ? await openLocal(options) : await loadConfig(resolve(options.config), process.env);
  const log = openLog(config.log.level, isTerminal(process.stderr, options));
  process.on("uncaughtException", (cause) => endWith(cause, log));
  const ready = ({ gatewayPort, adminPort, metricsPort }: GatewayPorts): void => {
    resumeOptimizing();
    const ports = { gatewayPort, adminPort, metricsPort };
    process.stdout.write(isTerminal(process.stdout, options) ? readyText(config.listen.host, ports) : readyLine(ports));
  };
  if (config.store !== null) return serveReplica(config, config.store, log, ready);
  const opening = Gateway.open(config, log);
  // Starts before anything is read: changes while the gateway opens are reloaded once it is open.
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
  // Before readiness is printed: a signal sent right after it must stop the gateway, not kill it.
  const stopped = stopSignal();
  ready(ports);
  if (config.source === null) say(`${consoleCommand(options, ports)} opens its page, for people to watch and review`);
  await stopped;
  stopWatching();
  log.info("gateway_stopping");
  await gateway.close();
}

/**
 * Runs one of several replicas: it forwards until it owns the store, serves until another one does, and forwards again. It is
 * ready once its ports are open, whoever the owner is. Rejects as the start of a gateway would where its packs and plugins cannot
 * be loaded: that must not wait for the day on which it is to serve.
 */
async function serveReplica(
  started: GatewayConfig,
  store: StoreConfig,
  log: Log,
  ready: (ports: GatewayPorts) => void,
): Promise<void> {
  // What replicas alone need; their driver is an optional package.
  const [{ openReplica }, { loadOnTrial }] = await Promise.all([
    import("../compose/replica.ts"),
    import("./trial-load.ts"),
  ]);
  await loadOnTrial(started, () => undefined);
  const replica = await openReplica(started, store, log);
  const stopping = new AbortController();
  const stopped = stopSignal().then(() => stopping.abort());
  ready({ gatewayPort: replica.ports.gateway, adminPort: replica.ports.admin, metricsPort: replica.ports.metrics });
  try {
    for (;;) {
      const owned = await replica.own(stopping.signal);
      if (owned === null) return;
      await serveOwned(started, owned, log, stopped).finally(() => owned.release());
    }
  } finally {
    await replica.close(started.limits.drainMs);
  }
}

/** Serves until this replica is stopped or loses the store. A store that is lost while it is opened is no failure. */
async function serveOwned(started: GatewayConfig, owned: Ownership, log: Log, stopped: Promise<void>): Promise<void> {
  const config = await currentConfig(started, log);
  try {
    const gateway = await Gateway.open(config, log, owned);
    const stopWatching = watchConfiguration(config, log, () => reload(gateway, config, log));
    const isLost = await Promise.race([stopped.then(() => false), owned.lost.then(() => true)]);
    stopWatching();
    if (isLost) log.warn("replica_lease_lost");
    else log.info("gateway_stopping");
    await gateway.close(isLost ? 0 : undefined);
  } catch (cause) {
    const { code, detail } = GatewayError.from(cause);
    if (code !== "EVIDENCE_UNAVAILABLE") throw cause;
    log.warn({ cause: detail }, "replica_store_lost");
  }
}

/** The configuration as the file has it by now; the one of the start where that cannot be used. */
async function currentConfig(started: GatewayConfig, log: Log): Promise<GatewayConfig> {
  if (started.source === null) return started;
  return loadConfig(started.source, process.env).catch((cause: unknown) => {
    const { code, message } = GatewayError.from(cause);
    log.error({ code, detail: message }, "reload_refused");
    return started;
  });
}

/** Returns whether a stream is read by a person. */
function isTerminal({ isTTY }: NodeJS.WriteStream, { json }: ServeOptions): boolean {
  return isTTY === true && json === undefined;
}

async function openLocal({ data, port }: ServeOptions): Promise<GatewayConfig> {
  const { config, keys } = await openLocalMode(resolve(data ?? "data"), port);
  say("local mode, tenant `local`");
  for (const { id, role, path, made } of keys) {
    const place = made === null ? `the key is in ${path}` : `generated the key ${made}, stored in ${path}`;
    say(`for the ${id}, role \`${role}\`: ${place}`);
  }
  return config;
}

/** Reloads packs and keys; where that fails the last good ones stay. */
async function reload(gateway: Gateway, started: GatewayConfig, log: Log): Promise<void> {
  try {
    const config = started.source === null ? started : await loadConfig(started.source, process.env);
    await gateway.reload(config);
    log.info("configuration_reloaded");
  } catch (cause) {
    const { code, message } = GatewayError.from(cause);
    log.error({ code, detail: message }, "reload_refused");
  }
}

/** Ends the process: its state can no longer be trusted. The next start records actions in flight as unknown. */
function endWith(cause: unknown, log: Log): never {
  log.error(crashOf(cause), "process_crashed");
  process.exit(1);
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
}

/** The line on standard output from which programs read the open ports. Its members never change meaning. */
function readyLine({ gatewayPort, adminPort, metricsPort }: GatewayPorts): string {
  const ready = { event: "ready", gateway_port: gatewayPort, admin_port: adminPort, metrics_port: metricsPort };
  return `${JSON.stringify(ready)}\n`;
}

/** The open ports for a person at a terminal. */
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

const usualConsolePort = 8_082;

/** The command that opens the console of local mode. */
function consoleCommand({ data }: ServeOptions, { metricsPort }: GatewayPorts): string {
  const folder = data === undefined ? "" : ` --data ${/^[\w./-]+$/.test(data) ? data : quotePosix(data)}`;
  const url = metricsPort === usualConsolePort ? "" : ` --url http://127.0.0.1:${metricsPort}`;
  return `\`gateway console${folder}${url}\``;
}

/** Editors write a file in several steps: a reload waits until changes end, up to a limit. */
const settleMs = 200;
const maxWaitMs = 2_000;

/**
 * Calls `reload` at once on SIGHUP, and soon after a change of the configuration file or a pack; never concurrently.
 * Returns a function that stops watching.
 */
function watchConfiguration(config: GatewayConfig, log: Log, reload: () => Promise<void>): () => void {
  let timer: NodeJS.Timeout | undefined;
  let changedMs: number | undefined;
  let running: Promise<void> = Promise.resolve();
  const now = (): void => {
    clearTimeout(timer);
    changedMs = undefined;
    tree.refresh(); // before the reload reads: later changes are seen
    running = running.then(reload);
  };
  const soon = (): void => {
    clearTimeout(timer);
    changedMs ??= performance.now();
    timer = setTimeout(now, Math.max(0, Math.min(settleMs, changedMs + maxWaitMs - performance.now())));
  };
  const tree = new TreeWatch({
    paths: [
      ...[...config.policy.packs, ...config.policy.plugins, ...config.policy.engines].map(({ path }) => path),
      ...config.extensions.trustFiles,
      ...(config.source === null ? [] : [config.source]),
    ],
    onChange: soon,
    onBlind: (path) => log.warn({ path }, "watch_failed"),
  });
  process.on("SIGHUP", now);
  return () => {
    clearTimeout(timer);
    process.off("SIGHUP", now);
    tree.close();
  };
}
