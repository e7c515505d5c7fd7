import { expect } from "chai";
import { actionEffects, type GitFact } from "../../../core/action/action-fact.ts";
import { shippedEffectTable } from "../../../core/fact/effect-table.ts";
import { readGit } from "../../../core/fact/git/git-command.ts";
import { loadShellParsers, readShell } from "../../../core/fact/shell/shell-line.ts";
import { factCorpus } from "../../support/fact-corpus.ts";
import { fuzzInputs, fuzzSeed, maxInputMs, pick, processorMs, type Random, randomFrom } from "../../support/fuzz.ts";

const inputs = fuzzInputs(1_000);
const table = shippedEffectTable();
/** The arguments of the corpus's runs of git, as far as blanks tell them apart. */
const runs = factCorpus("git").map(({ input }) =>
  input
    .replace(/['"]/g, "")
    .split(/\s+/)
    .filter((word) => word !== ""),
);
const words = [...new Set(runs.flat())];

describe("git from a list of arguments and from a command line", () => {
  before(loadShellParsers);

  it(`is the same run with the same effect, never throws, and stays within its bounds (seed ${fuzzSeed})`, () => {
    const random = randomFrom(fuzzSeed);
    for (let round = 0; round < inputs; round += 1) {
      const argv = mutate(random);
      const line = ["git", ...argv.map((word) => quote(word, random))].join(" ");
      const hint = `seed ${fuzzSeed}: ${JSON.stringify(argv)} as ${JSON.stringify(line)}`;
      const { fact } = readGit(argv, []);
      let read = readShell(line, table);
      const ms = processorMs(() => {
        read = readShell(line, table);
      });
      expect(ms, hint).to.be.below(maxInputMs);
      expect(rankOf(read.shell.effect), hint).to.be.at.least(rankOf(fact.effect));
      if (read.shell.parsed) expect(read.git, hint).to.deep.equal([fact]);
      expect(readShell(["git", ...argv], table).git.slice(0, 1), hint).to.deep.equal(isWhole(argv) ? [fact] : []);
      expect(rankOf(fact.effect), hint).to.be.at.least(rankOf(leastEffect(fact)));
    }
  });
});

function rankOf(effect: GitFact["effect"]): number {
  return actionEffects.indexOf(effect);
}

/** Force is at least a deletion, and a setting may name a program. */
function leastEffect({ force, config_overrides: configs }: GitFact): GitFact["effect"] {
  if (configs.length > 0) return "execute";
  return force ? "delete" : "read";
}

/** False where no line can hold the words: control characters. */
function isWhole(argv: readonly string[]): boolean {
  return !argv.some((word) => /[\0\r\u202e]/.test(word));
}

function quote(word: string, random: Random): string {
  if (/^[\w./:=@%+-]+$/.test(word) && random() < 0.7) return word;
  const single = `'${word.replaceAll("'", "'\\''")}'`;
  const isPlain = !/["\\$`!]/.test(word);
  return isPlain && random() < 0.5 ? `"${word}"` : single;
}

const inserts = [
  "",
  "-",
  "--",
  "-c",
  "--force",
  "-f",
  "+",
  ":",
  "::",
  "=",
  " ",
  "\n",
  "'",
  "\0",
  "\r",
  "\u202e",
  "%G?",
  "ext::sh",
];

function mutate(random: Random): readonly string[] {
  const run = pick(runs, random);
  const argv = run[0] === "git" ? run.slice(1) : [...run];
  const at = Math.floor(random() * (argv.length + 1));
  switch (Math.floor(random() * 6)) {
    case 0:
      return [...argv.slice(0, at), pick(words, random), ...argv.slice(at)];
    case 1:
      return [...argv.slice(0, at), pick(inserts, random), ...argv.slice(at)];
    case 2:
      return argv.map((word) => (random() < 0.3 ? pick(inserts, random) + word : word));
    case 3:
      return argv.map((word) => (random() < 0.3 ? word.slice(0, Math.floor(random() * (word.length + 1))) : word));
    case 4:
      return [...argv.slice(0, at), ...argv.slice(at + 1)];
    default:
      return argv.toSorted(() => random() - 0.5);
  }
}
