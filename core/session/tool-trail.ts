import { forgetOldest } from "../kernel/forget.ts";
import type { KnownTool } from "./tool-table.ts";

const most = 128;

/** Which tools a session used: the last 128, and how many that were not among these when they were used. */
export class ToolTrail {
  readonly #digests: Set<string>;
  #count: number;

  constructor(digests: readonly string[] = [], count = 0) {
    this.#digests = new Set(digests);
    this.#count = count;
  }

  get count(): number {
    return this.#count;
  }

  /** The one used last is the last. */
  get digests(): readonly string[] {
    return [...this.#digests];
  }

  has({ digest }: KnownTool): boolean {
    return this.#digests.has(digest);
  }

  add({ digest }: KnownTool): void {
    if (!this.#digests.delete(digest)) this.#count++;
    this.#digests.add(digest);
    forgetOldest(this.#digests, most);
  }
}
