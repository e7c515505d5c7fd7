import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Log } from "../observe/log.ts";
import { TreeWatch } from "./tree-watch.ts";

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
      tree.refresh(); // before the reload reads: what changes after this is heard of again
      running = running.then(reload);
    }, settleMs);
  };
  const tree = new TreeWatch({
    paths: [...config.policy.packs.map(({ path }) => path), ...(config.source === null ? [] : [config.source])],
    onChange: soon,
    onBlind: (path) => log.warn({ path }, "folder cannot be watched: send SIGHUP after a change"),
  });
  process.on("SIGHUP", soon);
  return () => {
    clearTimeout(timer);
    process.off("SIGHUP", soon);
    tree.close();
  };
}
