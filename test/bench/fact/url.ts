import { readUrl } from "../../../core/fact/url.ts";
import type { FactEntry } from "../../support/fact-corpus.ts";

export const name = "url";

/** Allows what certainly goes to a public http server, as far as the text says. */
export function judge({ input }: FactEntry): "allowed" | "asked" | "blocked" {
  const { scheme, zone, odd } = readUrl(input);
  if (zone !== "public" && zone !== "name") return "blocked";
  return !odd && (scheme === "http" || scheme === "https") ? "allowed" : "asked";
}
