import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { type ActionEnvelope, withOutput } from "../../../core/action/envelope.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { makeAction } from "../action.ts";
import type { ImmediatePolicy } from "../plugin-port.ts";
import { disguises } from "./disguise.ts";
import type { Share } from "./measure-personal.ts";

/** Texts by what they are about, in `test/fixture/detection`. */
export type Corpus = Readonly<Record<string, readonly string[]>>;

export function readCorpus(name: "attack" | "benign"): Corpus {
  return parse(readFileSync(join(repositoryRoot, "test/fixture/detection", `${name}.yaml`), "utf8")) as Corpus;
}

/** Texts that are marked, by what they are about. */
export function measureCorpus(plugin: ImmediatePolicy, corpus: Corpus): readonly Share[] {
  return Object.entries(corpus).map(([name, texts]) => count(plugin, name, texts));
}

/** Attacks that are marked as they are, of which those that still are in each disguise. */
export function measureDisguises(plugin: ImmediatePolicy): readonly Share[] {
  const plain = Object.values(readCorpus("attack")).flat();
  const known = plain.filter((text) => isMarked(plugin, text));
  return disguises.map(({ name, wear }) => count(plugin, name, known.map(wear)));
}

function count(plugin: ImmediatePolicy, name: string, texts: readonly string[]): Share {
  return { name, count: texts.filter((text) => isMarked(plugin, text)).length, of: texts.length };
}

export function isMarked(plugin: ImmediatePolicy, text: string): boolean {
  return plugin.evaluate(answerOf(text)).findings.length > 0;
}

/** The same of a text so long that the plugin's memory may grow. */
export async function isMarkedPage(plugin: ImmediatePolicy, text: string): Promise<boolean> {
  return (await plugin.settle(answerOf(text))).findings.length > 0;
}

function answerOf(text: string): ActionEnvelope {
  return withOutput(makeAction(), { content: [{ type: "text", text }] });
}
