import { readFileSync } from "node:fs";

/** The rights of a process that decide whether it may start another one as another user. */
export interface ProcessRights {
  /** Undefined where the system has no user ids. */
  readonly uid: number | undefined;
  /** `/proc/self/status`, and `/proc/self/setgroups`; empty where the system has no such file. */
  readonly status: string;
  readonly setgroups: string;
}

/** The numbers of capabilities in Linux: to end processes of another user, and to become one. */
const needed = { CAP_KILL: 5, CAP_SETGID: 6, CAP_SETUID: 7 } as const;

/**
 * Returns why a process with these rights may not start another one as another user and leave it none of its own; undefined
 * where it may. Only root may: a process that is not root keeps its capabilities when it changes its user, so a server could
 * change it back.
 */
export function switchProblem({ uid, status, setgroups }: ProcessRights): string | undefined {
  if (uid === undefined) return "a system without user ids";
  if (uid !== 0) return `user ${uid}`;
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1];
  if (effective !== undefined) {
    const held = BigInt(`0x${effective}`);
    const missing = Object.entries(needed).filter(([, bit]) => ((held >> BigInt(bit)) & 1n) === 0n);
    if (missing.length > 0) return `root without ${missing.map(([name]) => name).join(", ")}`;
  }
  return setgroups.trim() === "deny" ? "a user namespace in which groups cannot be given up" : undefined;
}

/** Returns the rights of this process. */
export function ownRights(): ProcessRights {
  return {
    uid: process.geteuid?.(),
    status: textOf("/proc/self/status"),
    setgroups: textOf("/proc/self/setgroups"),
  };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // no Linux
  }
}
