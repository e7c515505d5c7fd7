import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { LockHolder } from "./port.ts";

export type Status = "ok" | "warn" | "fail";

/** What one look found. Names variables and hosts, never what is secret in them. */
export interface Finding {
  readonly status: Status;
  readonly text: string;
  /** What to do about it, in one step; null where nothing has to be done. */
  readonly mend: string | null;
}

/** What is examined. */
export interface Patient {
  readonly config: GatewayConfig;
  /** Who holds the state in the data folder; null where nobody does, undefined where it cannot be known. */
  readonly holder: LockHolder | null | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** Where the admin port is asked. */
  readonly admin: string;
}

/** One check. May throw: what cannot be examined is no good sign. */
export type Examine = (patient: Patient) => Promise<readonly Finding[]>;

export function ok(text: string): Finding {
  return { status: "ok", text, mend: null };
}

export function warn(text: string, mend: string): Finding {
  return { status: "warn", text, mend };
}

export function fail(text: string, mend: string): Finding {
  return { status: "fail", text, mend };
}

/** `1 key`, `2 keys`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
