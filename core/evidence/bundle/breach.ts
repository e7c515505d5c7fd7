import type { Reason } from "./reason.ts";

/** Where a bundle breaks: a file of it, a record, or neither. */
export interface BreachPlace {
  readonly file?: string;
  readonly seq?: number | undefined;
}

/** Ends a verification. Thrown and caught inside this folder: it never leaves `verifyBundle`. */
export class Breach extends Error {
  readonly reason: Reason;
  readonly place: BreachPlace;

  constructor(reason: Reason, place: BreachPlace = {}) {
    super(reason);
    this.name = "Breach";
    this.reason = reason;
    this.place = place;
  }
}
