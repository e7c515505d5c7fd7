import type { Requirement } from "../support/requirement-table.ts";
import type { SourceTree } from "./source-tree.ts";

interface Citation {
  readonly id: string;
  readonly path: string;
  readonly title: string;
}

const title = /\b(?:it|describe)\s*\(\s*(["'`])((?:\\.|(?!\1)[^\\])*)\1/g;
const bracket = /\[([RS]\d[^\]]*)\]/g;

/** What the titles of the tests name in brackets: `[R1.1-3]`, `[S13]`, `[R1.1-3, S13]`. */
export function citationsOf(tests: SourceTree): readonly Citation[] {
  return [...tests].flatMap(([path, source]) =>
    [...source.matchAll(title)].flatMap(([, , words = ""]) =>
      [...words.matchAll(bracket)].flatMap(([, ids = ""]) =>
        ids.split(",").map((id) => ({ id: id.trim(), path, title: words })),
      ),
    ),
  );
}

/** Requirements met, or met in part, that no test names, and tests that name what is open or unknown. */
export function tieFaults(requirements: readonly Requirement[], tests: SourceTree): readonly string[] {
  const citations = citationsOf(tests);
  const cited = new Set(citations.map(({ id }) => id));
  const known = new Map(requirements.map((requirement) => [requirement.id, requirement]));
  const untested = requirements
    .filter(({ id, status }) => status !== "open" && !cited.has(id))
    .map(
      ({ id, sentence, status }) =>
        `${id} is ${status === "part" ? "met in part" : status}, but no test names it: ${sentence}`,
    );
  const misnamed = citations
    .filter(({ id }) => (known.get(id)?.status ?? "open") === "open")
    .map(({ id, path, title: words }) => `${path}: \`${words}\` names ${id}, which is ${statusOf(known.get(id))}`);
  return [...untested, ...misnamed];
}

function statusOf(requirement: Requirement | undefined): string {
  return requirement === undefined ? "unknown" : "open";
}
