import { resolve } from "node:path";
import { Command } from "commander";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { loadConfig } from "../config/load.ts";
import { Gateway } from "../gateway.ts";
import { GatewayError } from "../kernel/error.ts";
import { crashOf } from "../observe/crash.ts";
import { type Log, openLog } from "../observe/log.ts";
import { openLocalMode } from "./local-mode.ts";
import { takeLocalOptions } from "./local-option.ts";
import { readyLine, readyText } from "./ready.ts";
import { watchConfiguration } from "./watch.ts";

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
