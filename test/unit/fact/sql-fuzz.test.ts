import { expect } from "chai";
import { actionEffects } from "../../../core/action/action-fact.ts";
import { effectOf } from "../../../core/fact/sql/agreement.ts";
import { areSqlParsersSound, loadSqlParsers, readSql, readTwice } from "../../../core/fact/sql/sql-text.ts";
import { roundsOf } from "../../support/rounds.ts";
import { type SqlEntry, sqlCorpus } from "./sql-corpus.ts";

const rounds = roundsOf(600, 100_000);
const seed = Number(process.env.FUZZ_SEED ?? 1);

describe("readSql over mutated statements", () => {
  before(loadSqlParsers);

  it(`never throws, nor is weaker than either reader (seed ${seed})`, () => {
    const random = randomFrom(seed);
    for (let round = 0; round < rounds; round += 1) {
      const entry = pick(sqlCorpus, random);
      const text = mutate(entry, random);
      const { effect } = readSql(text, entry.dialect);
      for (const opinion of Object.values(readTwice(text, entry.dialect))) {
        const least = opinion === null ? 0 : actionEffects.indexOf(effectOf(opinion));
        expect(actionEffects.indexOf(effect), `seed ${seed}: ${JSON.stringify(text)}`).to.be.at.least(least);
      }
    }
    expect(areSqlParsersSound()).to.equal(true);
  });
});

type Random = () => number;

/** Mulberry32: the same numbers for the same seed. */
function randomFrom(start: number): Random {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function pick<T>(list: readonly T[], random: Random): T {
  return list[Math.floor(random() * list.length)] as T;
}

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
