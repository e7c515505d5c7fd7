import type { GatewayConfig } from "../../config/gateway-config.ts";

export type Status = "ok" | "warn" | "fail";

/** One result of a check. Names variables and hosts, never a secret. */
export interface DoctorFinding {
  readonly status: Status;
  readonly text: string;
  /** The fix, in one step; null for `ok`. */
  readonly fix: string | null;
}

/** The process that holds the state in a data folder. */
export interface LockHolder {
  readonly pid: number;
  /** As the system names it. */
  readonly name: string;
}

/** The installation to check. */
export interface DoctorTarget {
  readonly config: GatewayConfig;
  /** The process that holds the state; null for none, undefined where the system does not say. */
  readonly holder: LockHolder | null | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** URL of the admin port. */
  readonly admin: string;
}

/** One check. One that throws has failed. */
export type DoctorCheck = (target: DoctorTarget) => Promise<readonly DoctorFinding[]>;

export function ok(text: string): DoctorFinding {
  return { status: "ok", text, fix: null };
}

export function warn(text: string, fix: string): DoctorFinding {
  return { status: "warn", text, fix };
}

export function fail(text: string, fix: string): DoctorFinding {
  return { status: "fail", text, fix };
}

/** `1 key`, `2 keys`. */
export function quantity(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
