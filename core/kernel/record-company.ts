import type { Operation } from "./operation.ts";

/** What a record of the evidence takes with it. */
export interface RecordCompany {
  /** What becomes durable with it, or not at all. Called in the turn in which it gets its place in the chain. */
  operations(): readonly Operation[];
  /** Called once, when it is durable, or has failed. */
  end(): void;
}

/** Of a record that changes nothing else. */
export const noCompany: RecordCompany = { operations: () => [], end: () => undefined };
