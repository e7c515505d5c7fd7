import { quoteWord, visibleJson, visibleText } from "../../action/visible-text.ts";
import type { DefinitionComparison } from "../../definition/definition-reviews.ts";
import type { DefinitionReviewView } from "../../definition/operation.ts";
import { answerView, listView, type View } from "../admin-view.ts";
import { changeLines } from "./change.ts";

interface ComparisonView extends Omit<DefinitionComparison, "review"> {
  readonly review: DefinitionReviewView;
}

interface Reviewed {
  readonly review: DefinitionReviewView;
}

export const definitionList: View = listView<DefinitionReviewView>([
  { title: "definition", of: ({ id }) => id, isWhole: true },
  { title: "state", of: ({ state }) => state },
  { title: "tool", of: placeOf, isPrintable: true },
  { title: "findings", of: ({ reasons }) => [...new Set(reasons.map(({ finding }) => finding))].join(", ") },
  { title: "seen", of: (review) => review.seen_at, isWhole: true },
]);

export const definitionDetail: View = answerView<ComparisonView>((view, { adminFlag }) => ({
  text: renderComparison(view, adminFlag),
}));

export const approvedDefinition: View = answerView<Reviewed>(({ review }) => ({
  json: review,
  notes: [`approved ${review.id}: agents are shown ${placeOf(review)} as it is now`],
}));

export const deniedDefinition: View = answerView<Reviewed>(({ review }) => ({
  json: review,
  notes: [`denied ${review.id}: ${placeOf(review)} stays withheld`],
}));

/** Renders all that a reviewer needs to decide: both sides of each change whole, whatever an upstream wrote. */
function renderComparison({ review, before, after, changes, omitted }: ComparisonView, adminFlag: string): string {
  const { id, state, compared_with: other, replaces } = review;
  const lines = [
    `${id}  ${state}`,
    "",
    row("tool", placeOf(review)),
    ...review.reasons.map(({ finding, text }) => row("withheld", `${finding}: ${visibleText(text)}`)),
    ...(replaces.length === 0 ? [] : [row("replaces", replaces.map(quoteWord).join("  "))]),
    row("seen", `${review.seen_at} by ${visibleText(review.seen_key_id)}`),
    ...(review.reviewer === undefined ? [] : [row("denied", `${review.reviewed_at} by ${review.reviewer}`)]),
    ...(review.comment === undefined ? [] : [row("comment", visibleText(review.comment))]),
    row("digest", review.digest),
    "",
    before === null || other === null
      ? "no pinned definition to compare it with"
      : `changes since ${placeOf(other)} was pinned`,
    ...(before === null ? [] : changes.flatMap(changeLines).map(indent)),
    ...(omitted === 0 ? [] : [indent(`and ${omitted} more changes`)]),
    "",
    "the definition, whole",
    visibleJson(after),
    "",
    "next",
    indent(`gateway definitions approve ${id}${adminFlag}`),
    ...(state === "pending" ? [indent(`gateway definitions deny ${id}${adminFlag}`)] : []),
  ];
  return lines.join("\n");
}

function placeOf({ upstream, tool }: { readonly upstream: string; readonly tool: string }): string {
  return `${quoteWord(tool)} of ${quoteWord(upstream)}`;
}

function indent(line: string): string {
  return `  ${line}`;
}

function row(name: string, text: string): string {
  return `${name.padEnd(10)}${text}`;
}
