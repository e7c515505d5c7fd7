import { resolve } from "node:path";
import { Command } from "commander";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { loadConfig } from "../config/load.ts";
import { Gateway } from "../gateway.ts";
import { GatewayError } from "../kernel/error.ts";
import { type Log, openLog } from "../observe/log.ts";
import { openLocalMode } from "./local-mode.ts";
import { watchConfiguration } from "./watch.ts";

interface ServeOptions {
  readonly config?: string;
  readonly data: string;
}

/** `gateway serve`: runs until SIGINT or SIGTERM; SIGHUP and file changes reload packs and keys. */
export function serveCommand(): Command {
  return new Command("serve")
    .description("run the gateway; without --config in local mode, with the demo upstream and one generated key")
    .option("-c, --config <file>", "configuration file (gateway.yaml)")
    .option("-d, --data <folder>", "data folder of local mode", process.env.GATEWAY_DATA_DIR ?? "data")
    .action(async (options: ServeOptions) => {
      try {
        await serve(options);
      } catch (cause) {
        process.stderr.write(`gateway: ${GatewayError.from(cause).message}\n`);
        process.exitCode = 1;
      }
    });
}

async function serve(options: ServeOptions): Promise<void> {
  const config =
    options.config === undefined ? await local(options.data) : await loadConfig(resolve(options.config), process.env);
  const log = openLog(config.log.level);
  const gateway = await Gateway.open(config, log);
  const { gatewayPort, adminPort, metricsPort } = gateway.ports;
  const ready = { event: "ready", gateway_port: gatewayPort, admin_port: adminPort, metrics_port: metricsPort };
  process.stdout.write(`${JSON.stringify(ready)}\n`);
  const stopWatching = watchConfiguration(config, log, () => reload(gateway, config, log));
  await stopSignal();
  stopWatching();
  log.info("stopping: what is in flight may finish");
  await gateway.close();
}

async function local(dataDir: string): Promise<GatewayConfig> {
  const { config, keyPath, newKey } = await openLocalMode(resolve(dataDir));
  const told = newKey === null ? `the key is in ${keyPath}` : `made the key ${newKey}, kept in ${keyPath}`;
  process.stderr.write(`gateway: local mode, tenant \`local\`, role \`operator\`; ${told}\n`);
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

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
}
