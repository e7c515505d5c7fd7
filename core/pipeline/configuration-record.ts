import type { PolicyRef } from "../kernel/policy.ts";
import type { SharedEvent } from "./tenant-record.ts";

/** What comes into force, and why it is recorded now. */
export interface ConfigurationChange {
  readonly event: "started" | "reloaded";
  readonly configDigest: string;
  readonly policies: readonly PolicyRef[];
}

/** The record of which policies are in force. */
export function configurationEvent({ event, configDigest, policies }: ConfigurationChange): SharedEvent {
  const detail = { event, config_digest: configDigest, policies: policies.map((policy) => ({ ...policy })) };
  return { kind: "configuration", detail };
}
