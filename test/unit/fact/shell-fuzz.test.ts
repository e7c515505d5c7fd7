import { expect } from "chai";
import { actionEffects } from "../../../core/action/action-fact.ts";
import { shippedEffectTable } from "../../../core/fact/effect-table.ts";
import { loadShellParsers, readShell } from "../../../core/fact/shell/shell-line.ts";
import { factCorpus } from "../../support/fact-corpus.ts";
import { fuzzInputs, fuzzSeed, maxInputMs, pick, processorMs, type Random, randomFrom } from "../../support/fuzz.ts";
import { loadTreeReader, type TreeCommand, type TreeReader } from "../../support/syntax-tree.ts";

const inputs = fuzzInputs(1_000);
const table = shippedEffectTable();
const lines = ["shell", "git"].flatMap((kind) => factCorpus(kind).map(({ input }) => input));

describe("readShell over mutated command lines", () => {
  let readTree: TreeReader;
  before(async () => {
    await loadShellParsers();
    readTree = await loadTreeReader();
  });

  it(`never throws, stays within its bounds, and is no weaker than what the second parser finds (seed ${fuzzSeed})`, () => {
    const random = randomFrom(fuzzSeed);
    for (let round = 0; round < inputs; round += 1) {
      const line = mutate(random);
      const hint = `seed ${fuzzSeed}: ${JSON.stringify(line)}`;
      let effect = 0;
      const ms = processorMs(() => {
        effect = rankOf(readShell(line, table).shell.effect);
      });
      expect(ms, hint).to.be.below(maxInputMs);
      expect(effect, hint).to.be.at.least(leastRank(readTree(line)));
    }
  });
});

function rankOf(effect: (typeof actionEffects)[number]): number {
  return actionEffects.indexOf(effect);
}

/** The least effect that the commands of a tree have, each taken as a program with its words: no shell reads those again. */
function leastRank(commands: readonly TreeCommand[] | null): number {
  if (commands === null) return rankOf("unknown");
  return Math.max(0, ...commands.map(commandRank));
}

function commandRank({ words, writes }: TreeCommand): number {
  const least = writes.length > 0 ? rankOf("write") : 0;
  // Of a computed word nothing is certain but that it stands there.
  if (words.includes(null)) return least;
  const { effect } = readShell(words as string[], table).shell;
  // What comes through the pipe is unknown without it.
  const isFed = words.includes("xargs") && effect === "unknown";
  return isFed ? least : Math.max(least, rankOf(effect));
}

const inserts = [
  ..."'\"`\\$(){}[]<>|&;#!*?~=%@ \t\n\r\0",
  "$(",
  "<(",
  "${",
  "$'",
  '$"',
  "<<",
  "<<<",
  "<<'E'\n",
  "\nE\n",
];
const joins = ["; ", " | ", " && ", " || ", " & ", "\n", " |& ", " ; then ", " -exec ", " > ", " <<< ", " -- "];
const wraps: readonly ((line: string) => string)[] = [
  (line) => `$(${line})`,
  (line) => `(${line})`,
  (line) => `{ ${line}; }`,
  (line) => `bash -c '${line}'`,
  (line) => `env -i timeout 5 ${line}`,
  (line) => `if ${line}; then ls; fi`,
  (line) => `for f in a b; do ${line}; done`,
  (line) => `cat <(${line})`,
  (line) => `ls | xargs ${line}`,
  (line) => `find . -exec ${line} \\;`,
  (line) => `x=1 ${line}`,
  (line) => `echo "${line}"`,
  (line) => `cat <<E\n${line}\nE`,
];

function mutate(random: Random): string {
  let line = pick(lines, random);
  const times = 1 + Math.floor(random() * 3);
  for (let time = 0; time < times; time += 1) line = mutateOnce(line, random);
  return line;
}

function mutateOnce(line: string, random: Random): string {
  const at = Math.floor(random() * (line.length + 1));
  const other = pick(lines, random);
  switch (Math.floor(random() * 8)) {
    case 0:
      return pick(wraps, random)(line);
    case 1:
      return line.replaceAll(" ", () => pick([" ", "  ", "\t", "\\\n", " '' ", '""'], random));
    case 2:
      return `${line.slice(0, at)}${pick(inserts, random)}${line.slice(at)}`;
    case 3:
      return line + pick(joins, random) + other;
    case 4:
      return line.slice(0, at) + other.slice(Math.floor(random() * other.length));
    case 5:
      return line.slice(0, at) + line.slice(at + 1 + Math.floor(random() * 4));
    case 6:
      return line.replace(/\w/g, (letter) => (random() < 0.1 ? `\\${letter}` : letter));
    default:
      return `${line.slice(0, at)}${pick(["'", '"'], random)}${line.slice(at)}${pick(["'", '"'], random)}`;
  }
}
