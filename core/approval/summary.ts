import type { Capability } from "../action/capability.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { type ArgumentFacts, type Facts, findArgumentFacts } from "../action/fact.ts";
import { quoteWord } from "../action/visible-text.ts";
import { describeFacts } from "../fact/fact-words.ts";

/** The summary of an action for reviewers. It points at the arguments and does not replace them. */
interface ActionSummary {
  readonly capability: Capability;
  readonly tool: string;
  readonly target: string;
  readonly facts: ArgumentFacts;
  /** The words for what it does, by its typed facts. */
  readonly does: readonly string[];
}

const maxFactsPerKind = 5;
const maxPointerLength = 256;

export function summarizeAction({ capability, tool, target, arguments: args, facts }: ActionEnvelope): ActionSummary {
  const does = facts === undefined ? [] : describeFacts(facts);
  return { capability, tool, target, facts: findArgumentFacts(args), does };
}

/**
 * Renders the summary on one line, safe for a terminal: `write write_file on files; 34 bytes; paths /etc/hosts`.
 * At most five facts of a kind; what the action does, where its arguments were stated, comes first.
 */
export function summaryLine({ capability, tool, target, facts, does }: ActionSummary): string {
  const { bytes, hosts, paths, commands } = facts;
  const parts = [
    `${capability} ${quoteWord(tool)} on ${quoteWord(target)}`,
    ...does,
    `${bytes} bytes${renderLargest(facts)}`,
    ...renderFacts("hosts", hosts, quoteWord),
    ...renderFacts("paths", paths, quoteWord),
    ...renderFacts("commands", commands, (words) => words.map(quoteWord).join(" ")),
  ];
  return parts.join("; ");
}

function renderLargest({ maxField }: ArgumentFacts): string {
  if (maxField === undefined) return "";
  const { bytes, pointer } = maxField;
  // An agent chooses the names of members, and their length.
  return `, ${bytes} of them in ${pointer.length > maxPointerLength ? "one text" : quoteWord(pointer)}`;
}

function renderFacts<T>(name: string, { items, more }: Facts<T>, render: (fact: T) => string): readonly string[] {
  if (items.length === 0) return more ? [`${name} too long to list`] : [];
  const rendered = items.slice(0, maxFactsPerKind).map(render).join(", ");
  return [`${name} ${rendered}${more || items.length > maxFactsPerKind ? " and more" : ""}`];
}
