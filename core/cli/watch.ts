import { type FSWatcher, watch } from "node:fs";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Log } from "../observe/log.ts";

/** Editors write a file in several steps; a reload waits until they are done. */
const settleMs = 200;

/**
 * Calls `reload` on SIGHUP and after the configuration file or a pack changed, never twice at once.
 * Returns the function that stops it.
 */
export function watchConfiguration(config: GatewayConfig, log: Log, reload: () => Promise<void>): () => void {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  const soon = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      running = running.then(reload);
    }, settleMs);
  };
  const paths = [...config.policy.packs.map(({ path }) => path), ...(config.source === null ? [] : [config.source])];
  const watchers = paths.flatMap((path) => watchPath(path, log, soon));
  process.on("SIGHUP", soon);
  return () => {
    clearTimeout(timer);
    process.off("SIGHUP", soon);
    for (const watcher of watchers) watcher.close();
  };
}

function watchPath(path: string, log: Log, changed: () => void): FSWatcher[] {
  try {
    const watcher = watch(path, { recursive: true }, changed);
    watcher.on("error", () => log.warn({ path }, "file can no longer be watched: send SIGHUP after a change"));
    return [watcher];
  } catch {
    log.warn({ path }, "file cannot be watched: send SIGHUP after a change");
    return [];
  }
}
