import type { Operation } from "./operation.ts";

/** What an outcome takes with it. */
export interface OutcomeCompany {
  /** What becomes durable with it, or not at all. Called in the turn in which it gets its place in the chain. */
  operations(): readonly Operation[];
  /** Called once, when it is durable, or has failed. */
  end(): void;
}
