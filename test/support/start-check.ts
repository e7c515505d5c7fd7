import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError } from "../../core/action/error.ts";
import { Gateway } from "../../core/compose/gateway.ts";
import { loadConfig } from "../../core/config/load.ts";
import { openLog } from "../../core/observe/log.ts";

/**
 * Loads and opens a gateway in `folder` as `gateway serve` does, and closes it; within this process, for tests of many
 * starts. Where it refuses to open, throws an Error with the line that the command prints. `startGateway` is for what only
 * a process shows: output, exit, signals.
 */
export async function checkStart(folder: string, config: string): Promise<void> {
  const path = join(folder, "gateway.yaml");
  await writeFile(path, config);
  const gateway = await open(path).catch((cause: unknown) => {
    throw new Error(`gateway: ${GatewayError.from(cause).message}`);
  });
  await gateway.close();
}

async function open(path: string): Promise<Gateway> {
  return Gateway.open(await loadConfig(path, process.env), openLog("silent", false));
}

/** Returns the line that says why a gateway in `folder` does not open; throws where it does. */
export async function startRefusal(folder: string, config: string): Promise<string> {
  const opened = await checkStart(folder, config).catch((error: unknown) => error);
  if (opened instanceof Error) return opened.message;
  throw new Error("expected the gateway to refuse to start");
}
