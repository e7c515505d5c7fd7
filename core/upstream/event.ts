/** What the fleet reports to the operator's log. */
export type UpstreamEvent =
  | { readonly kind: "connected"; readonly upstream: string; readonly era: string; readonly revision: string }
  | { readonly kind: "closed"; readonly upstream: string; readonly reason: string }
  | { readonly kind: "restarting"; readonly upstream: string; readonly delayMs: number; readonly failures: number }
  /** Something the upstream offers is not shown to clients. */
  | { readonly kind: "withheld"; readonly upstream: string; readonly name: string; readonly reason: string }
  /** A connection could not be opened, or a list could not be read. */
  | { readonly kind: "refused"; readonly upstream: string; readonly reason: string }
  /** A line of the process's standard error, or what it wrote to standard output that is no message. */
  | { readonly kind: "log"; readonly upstream: string; readonly line: string };

export type EventSink = (event: UpstreamEvent) => void;

export interface UpstreamHealth {
  readonly name: string;
  readonly transport: "stdio" | "http" | "sse";
  /** `idle`: nothing asked for it yet; `down`: the last attempt failed or the last connection was lost. */
  readonly state: "idle" | "up" | "down";
  readonly connections: number;
  readonly failures: number;
  /** Why it is down. */
  readonly reason?: string;
}

export interface Withheld {
  readonly upstream: string;
  readonly name: string;
  readonly reason: string;
}
