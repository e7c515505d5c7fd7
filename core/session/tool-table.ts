import { sha256Hex } from "../kernel/digest.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import { forgetOldest } from "../kernel/forget.ts";
import { ownText } from "./own-text.ts";

/** A tool of an upstream, in texts that may be kept. */
export interface KnownTool {
  readonly tool: string;
  readonly target: string;
  /** Short, as each session keeps many, and too long for an upstream to name two tools that share one. */
  readonly digest: string;
}

const mostKnown = 1_000;

/** The tools that were used last by any session, each told once. */
export class ToolTable {
  readonly #known = new Map<string, KnownTool>();

  find({ tool, target }: Pick<ActionEnvelope, "tool" | "target">): KnownTool {
    const key = `${target}\n${tool}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const found = Object.freeze({ tool: ownText(tool), target: ownText(target), digest: sha256Hex(key).slice(0, 16) });
    this.#known.set(key, found);
    forgetOldest(this.#known, mostKnown);
    return found;
  }
}
