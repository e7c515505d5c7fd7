import { expect } from "chai";
import { type ActionEffect, actionEffects, sqlDialects } from "../../../core/action/action-fact.ts";
import { effectOf } from "../../../core/fact/sql/agreement.ts";
import { loadSqlParsers, readSql, readTwice } from "../../../core/fact/sql/sql-text.ts";
import { fuzzInputs, fuzzSeed, maxInputMs, pick, processorMs, type Random, randomFrom } from "../../support/fuzz.ts";
import { type SqlEntry, sqlCorpus } from "./sql-corpus.ts";

const inputs = fuzzInputs(600);

describe("readSql over mutated statements", () => {
  before(loadSqlParsers);

  it(`never throws, nor is weaker than either reader (seed ${fuzzSeed})`, () => {
    const random = randomFrom(fuzzSeed);
    for (let round = 0; round < inputs; round += 1) {
      const entry = pick(sqlCorpus, random);
      const text = mutate(entry, random);
      let effect: ActionEffect = "read";
      const ms = processorMs(() => {
        effect = readSql(text, entry.dialect).effect;
      });
      expect(ms, `seed ${fuzzSeed}: ${JSON.stringify(text)}`).to.be.below(maxInputMs);
      for (const opinion of Object.values(readTwice(text, entry.dialect))) {
        const least = opinion === null ? 0 : actionEffects.indexOf(effectOf(opinion));
        expect(actionEffects.indexOf(effect), `seed ${fuzzSeed}: ${JSON.stringify(text)}`).to.be.at.least(least);
      }
    }
    // A parser that trapped would be gone until the next turn of the event loop.
    for (const dialect of sqlDialects) expect(readSql("select 1", dialect).parsed, dialect).to.equal(true);
  });
});

const inserts = [
  "/**/",
  "--\n",
  "\t",
  "'",
  '"',
  "`",
  ";",
  "\\",
  "(",
  ")",
  "$$",
  "/*!",
  "*/",
  "#",
  "\n",
  "%",
  "||",
  "0x",
  "[",
  "]",
];

function mutate({ input }: SqlEntry, random: Random): string {
  const at = Math.floor(random() * (input.length + 1));
  const other = pick(sqlCorpus, random).input;
  switch (Math.floor(random() * 8)) {
    case 0:
      return [...input].map((each) => (random() < 0.5 ? each.toUpperCase() : each)).join("");
    case 1:
      return input.replaceAll(" ", () => pick(["/**/", "\n", "\t", "  ", "--x\n"], random));
    case 2:
      return `${input.slice(0, at)}${pick(inserts, random)}${input.slice(at)}`;
    case 3:
      return `${input};${other}`;
    case 4:
      return input.slice(0, at) + other.slice(Math.floor(random() * other.length));
    case 5:
      return input.slice(0, at) + input.slice(at + 1 + Math.floor(random() * 4));
    case 6:
      return input.replaceAll("'", pick(['"', "''", "`", "\\'"], random));
    default:
      return `select (${input}) union ${other}`;
  }
}
