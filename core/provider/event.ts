import type { ErrorCode } from "../kernel/error.ts";
import type { BreakerState } from "./breaker.ts";

/** What the fleet reports to the operator's log. */
export type ProviderEvent =
  /** An attempt failed. `detail` quotes nothing that the provider said. */
  | { readonly kind: "failed"; readonly provider: string; readonly code: ErrorCode; readonly detail: string }
  | { readonly kind: "repeated"; readonly provider: string; readonly attempt: number; readonly delayMs: number }
  | { readonly kind: "breaker"; readonly provider: string; readonly state: BreakerState };

export type ProviderEventSink = (event: ProviderEvent) => void;

/** One provider as operators see it. No address, no key. */
export interface ProviderHealth {
  readonly name: string;
  readonly type: "mock" | "openai" | "anthropic";
  readonly enabled: boolean;
  /** As clients say them. */
  readonly models: readonly string[];
  /** The models whose routes name it. */
  readonly routes: readonly string[];
  /** `closed`: it is asked; `open`: it rests; `half_open`: one request tries it. */
  readonly breaker: BreakerState;
  /** In a row. */
  readonly failures: number;
  readonly requestsInFlight: number;
  /** Until it is asked again; 0 unless it rests. */
  readonly restsForMs: number;
  /** Why the last attempt failed; null where it did not. */
  readonly lastFault: ErrorCode | null;
}
