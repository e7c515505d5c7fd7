import type { JsonObject } from "../../core/action/json.ts";

/** A call that the model asks for. */
export interface WantedCall {
  readonly tool: "read_note" | "write_note" | "delete_note";
  readonly args: JsonObject;
}

/** What happens to a call: it is allowed, blocked, or held; and what the reviewer makes of it then. */
export type Fate = "allowed" | "blocked" | "approved later" | "repeated" | "approved at once" | "denied";

/**
 * The calls of one conversation, in order. The fourth is the third again, after somebody has approved that: the way that a
 * held call takes where nobody reviews it while it waits.
 */
export const steps: Readonly<Record<Fate, WantedCall>> = {
  allowed: { tool: "read_note", args: { title: "welcome" } },
  blocked: { tool: "delete_note", args: { title: "welcome" } },
  "approved later": { tool: "write_note", args: { title: "plan", text: "Ship it." } },
  repeated: { tool: "write_note", args: { title: "plan", text: "Ship it." } },
  "approved at once": { tool: "write_note", args: { title: "lunch", text: "At noon." } },
  denied: { tool: "write_note", args: { title: "salary", text: "Double it." } },
};

export const fates = Object.keys(steps) as readonly Fate[];

/** What the model says when it has no more calls to ask for. */
export const farewell = "That is all I wanted to try.";

/** Who reviews what is held, and sees what reached the server. */
export interface TaskReviewer {
  /** How often the server was asked to write. */
  writes(): number;
  awaitPending(): Promise<{ readonly id: string }>;
  list(): Promise<readonly { readonly id: string }[]>;
  approve(id: string): Promise<void>;
  deny(id: string, comment: string): Promise<void>;
}

/** A conversation that goes round in circles ends after so many answers. */
const maxAsked = 30;

export const denial = "not before the board has met";

/** One conversation: says which call comes after what was told of the earlier ones, and has held calls reviewed in time. */
export class Task {
  /** What was told of each call, in the order of `fates`. */
  told: readonly string[] = [];
  /** How often the server had been asked to write when the first held call was answered. */
  writesWhileHeld: number | undefined;
  readonly #reviewer: TaskReviewer;
  readonly #reviews: Promise<void>[] = [];
  #asked = 0;

  constructor(reviewer: TaskReviewer) {
    this.#reviewer = reviewer;
  }

  /** The next call; undefined where there is none. `told`: of all calls so far. */
  async next(told: readonly string[]): Promise<WantedCall | undefined> {
    this.#asked++;
    if (this.#asked > maxAsked) return undefined;
    const isNew = told.length > this.told.length;
    if (told.length >= this.told.length) this.told = told;
    const fate = fates[told.length];
    if (fate === undefined) return undefined;
    if (isNew || told.length === 0) await this.#prepare(fate);
    return steps[fate];
  }

  /** Resolves when the reviewer has done everything; rejects as a review did. */
  async reviewed(): Promise<void> {
    await Promise.all(this.#reviews);
  }

  async #prepare(fate: Fate): Promise<void> {
    const reviewer = this.#reviewer;
    if (fate === "repeated") {
      this.writesWhileHeld = reviewer.writes();
      for (const { id } of await reviewer.list()) await reviewer.approve(id);
    }
    if (fate === "approved at once") this.#review(async (id) => reviewer.approve(id));
    if (fate === "denied") this.#review(async (id) => reviewer.deny(id, denial));
  }

  #review(judge: (id: string) => Promise<void>): void {
    const review = this.#reviewer.awaitPending().then(({ id }) => judge(id));
    review.catch(() => undefined); // `reviewed` reports it
    this.#reviews.push(review);
  }
}
