import type { Capability } from "../action/capability.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { type ArgumentFacts, type Facts, findArgumentFacts } from "../action/fact.ts";
import { quoteVisible, scriptNote } from "../action/visible-text.ts";

/** What a reviewer wants to know first of an action. It points at the arguments and does not stand for them. */
interface ActionSummary {
  readonly capability: Capability;
  readonly tool: string;
  readonly target: string;
  readonly facts: ArgumentFacts;
}

const maxInLine = 5;
const maxPointer = 256;

export function summarizeAction({ capability, tool, target, arguments: args }: ActionEnvelope): ActionSummary {
  return { capability, tool, target, facts: findArgumentFacts(args) };
}

/**
 * The summary on one line, fit for a terminal: `write write_file on files; 34 bytes; paths /etc/hosts`.
 * Five facts of a kind, and whether there are more.
 */
export function summaryLine({ capability, tool, target, facts }: ActionSummary): string {
  const { bytes, hosts, paths, commands } = facts;
  const parts = [
    `${capability} ${showWord(tool)} on ${showWord(target)}`,
    `${bytes} bytes${showLargest(facts)}`,
    ...listFacts("hosts", hosts, showWord),
    ...listFacts("paths", paths, showWord),
    ...listFacts("commands", commands, (words) => words.map(showWord).join(" ")),
  ];
  return parts.join("; ");
}

function showLargest({ maxField }: ArgumentFacts): string {
  if (maxField === undefined) return "";
  const { bytes, pointer } = maxField;
  // A member's name is as long as an agent likes.
  return `, ${bytes} of them in ${pointer.length > maxPointer ? "one text" : showWord(pointer)}`;
}

function listFacts<T>(name: string, { items, more }: Facts<T>, show: (fact: T) => string): readonly string[] {
  if (items.length === 0) return more ? [`${name} too long to tell`] : [];
  const shown = items.slice(0, maxInLine).map(show).join(", ");
  return [`${name} ${shown}${more || items.length > maxInLine ? " and more" : ""}`];
}

/** A word as it is, or between quotes where it could be taken for several, or for something else. */
export function showWord(word: string): string {
  if (/^[\w./~:@%+*\\-]+$/.test(word)) return word;
  const note = scriptNote(word);
  return note === undefined ? quoteVisible(word) : `${quoteVisible(word)} [${note}]`;
}
