import type { Catalog } from "./catalog.ts";
import type { UpstreamConnection } from "./connection.ts";

/** One upstream as one group uses it: a connection that is opened when needed, and what can be had there. */
export interface Link {
  readonly upstream: string;
  readonly catalog: Catalog;
  /** Whether the last attempt to reach the upstream failed. */
  readonly failing: boolean;
  /** The open connection, or a promise of it. Rejects where it cannot be had. */
  connection(): UpstreamConnection | Promise<UpstreamConnection>;
  close(): Promise<void>;
}
