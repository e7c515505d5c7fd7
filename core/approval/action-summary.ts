import { type ArgumentFacts, findArgumentFacts } from "../kernel/argument-fact.ts";
import type { Capability } from "../kernel/capability.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import type { Facts } from "../kernel/fact-set.ts";
import { quoteVisible, scriptNote } from "../kernel/visible-text.ts";

/** What a reviewer wants to know first of an action. It points at the arguments and does not stand for them. */
export interface ActionSummary {
  readonly capability: Capability;
  readonly tool: string;
  readonly target: string;
  readonly facts: ArgumentFacts;
}

const mostInLine = 5;
const longestPointer = 256;

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

function showLargest({ largestField }: ArgumentFacts): string {
  if (largestField === undefined) return "";
  const { bytes, pointer } = largestField;
  // A member's name is as long as an agent likes.
  return `, ${bytes} of them in ${pointer.length > longestPointer ? "one text" : showWord(pointer)}`;
}

function listFacts<T>(name: string, { items, more }: Facts<T>, show: (fact: T) => string): readonly string[] {
  if (items.length === 0) return more ? [`${name} too long to tell`] : [];
  const shown = items.slice(0, mostInLine).map(show).join(", ");
  return [`${name} ${shown}${more || items.length > mostInLine ? " and more" : ""}`];
}

/** A word as it is, or between quotes where it could be taken for several, or for something else. */
export function showWord(word: string): string {
  if (/^[\w./~:@%+*\\-]+$/.test(word)) return word;
  const note = scriptNote(word);
  return note === undefined ? quoteVisible(word) : `${quoteVisible(word)} [${note}]`;
}
