import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Log } from "../observe/log.ts";
import { TreeWatch } from "./tree-watch.ts";

/** Editors write a file in several steps; a reload waits until they are done, but not for ever. */
const settleMs = 200;
const longestWaitMs = 2_000;

/**
 * Calls `reload` at once on SIGHUP, and soon after the configuration file or a pack changed; never twice at a time.
 * Returns the function that stops it.
 */
export function watchConfiguration(config: GatewayConfig, log: Log, reload: () => Promise<void>): () => void {
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
    timer = setTimeout(now, Math.max(0, Math.min(settleMs, changedMs + longestWaitMs - performance.now())));
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
