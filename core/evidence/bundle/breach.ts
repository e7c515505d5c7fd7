import type { Reason } from "./reason.ts";

/** The parts of a bundle that a verdict can name, the bundle itself, and the witness that an auditor brings along. */
export type BundlePart = `line ${number}` | "bundle" | "checkpoint" | "consistency" | "records" | "seal" | "witness";

/** Where a bundle breaks: a part of it, and which record. */
export interface BreachPlace {
  readonly file: BundlePart;
  readonly seq?: number | undefined;
}

/** Ends a verification. Thrown and caught inside this folder: it never leaves `verifyBundle`. */
export class Breach extends Error {
  readonly reason: Reason;
  readonly place: BreachPlace;

  constructor(reason: Reason, place: BreachPlace) {
    super(reason);
    this.name = "Breach";
    this.reason = reason;
    this.place = place;
  }
}
