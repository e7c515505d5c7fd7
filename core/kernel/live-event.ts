import type { JsonObject } from "./json.ts";

/** What can be watched while it happens. */
export const liveChannels = ["decisions", "approvals", "risk", "metrics"] as const;
export type LiveChannel = (typeof liveChannels)[number];

/** Something that happened to a tenant. It tells no argument and no answer. */
export interface LiveEvent {
  readonly channel: LiveChannel;
  /** RFC 3339, milliseconds, UTC. */
  readonly time: string;
  readonly data: JsonObject;
}
