import { shippedEffectTable } from "../../../core/fact/effect-table.ts";
import { loadShellParsers, readShell } from "../../../core/fact/shell/shell-line.ts";
import type { FactEntry } from "../../support/fact-corpus.ts";

export const name = "shell";

await loadShellParsers();
const table = shippedEffectTable();

/** Allows what certainly only reads, and asks where nobody can tell. */
export function judge({ input }: FactEntry): "allowed" | "asked" | "blocked" {
  const { effect } = readShell(input, table).shell;
  if (effect === "unknown") return "asked";
  return effect === "read" ? "allowed" : "blocked";
}
