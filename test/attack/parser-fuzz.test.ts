import { expect } from "chai";
import { tableHead, tableRow } from "../bench/table.ts";
import { FuzzBudget, fuzzInputs, fuzzMinutes, fuzzSeed, maxInputMs, type Random, randomFrom } from "../support/fuzz.ts";
import { heapInUse } from "../support/heap.ts";
import { mutateInput } from "../support/input-mutation.ts";
import { KeptInputs } from "../support/kept-input.ts";
import { proofSubjects } from "./parser/proof.ts";
import { accepted, type Subject } from "./parser/subject.ts";
import { textSubjects } from "./parser/text.ts";

const subjects: readonly (readonly [string, Subject])[] = Object.entries({ ...textSubjects, ...proofSubjects });
const columns = ["parser", "inputs", "accepted", "ways of refusing", "slowest ms", "CPU s", "heap growth KiB"];
/** The most that a parser may leave in memory: what is compiled, interned or cached within bounds. */
const maxGrowth = 48 * 1_048_576;

describe("what reads the words of strangers, over changed inputs", function () {
  this.timeout(600_000 + fuzzInputs(0) * 40 + fuzzMinutes * 120_000);

  const rows: string[] = [];
  let heap = 0;
  let resident = 0;
  before(() => {
    heap = heapInUse();
    resident = process.memoryUsage().rss;
  });
  after(() => {
    if (fuzzMinutes > 0) process.stdout.write(`\n${tableHead(columns)}${rows.join("")}`);
  });

  for (const [name, subject] of subjects) {
    it(`never breaks, stays within its bounds and takes nothing for what it is not: ${name} (seed ${fuzzSeed})`, async () => {
      const { seeds, words, price = 1 } = subject;
      const kept = new KeptInputs(name);
      for (const input of kept.all)
        expect(await outcomeOf(subject, input, randomFrom(fuzzSeed))).to.not.equal(accepted);
      const random = randomFrom(fuzzSeed);
      const start = process.cpuUsage();
      const inputs = Math.ceil(fuzzInputs(2_000) / price);
      const budget = new FuzzBudget(inputs, subjects.length);
      const base = [...seeds, ...kept.all];
      const reasons = new Set<string>();
      let [tried, taken, slowest] = [0, 0, 0];
      for (; budget.hasRoom(tried); tried++) {
        const input = mutateInput(base, words, random);
        const before = process.cpuUsage();
        const outcome = await outcomeOf(subject, input, random, `seed ${fuzzSeed}, round ${tried}`);
        const spent = millisecondsSince(before);
        expect(spent, `round ${tried}`).to.be.below(maxInputMs);
        slowest = Math.max(slowest, spent);
        if (outcome === accepted) taken++;
        else if (!reasons.has(outcome)) {
          reasons.add(outcome);
          kept.add(outcome, input);
        }
      }
      kept.save();
      const cpuSeconds = millisecondsSince(start) / 1_000;
      const outcomes = await Promise.all(seeds.map((seed) => subject.read(seed, random)));
      expect(outcomes.filter((outcome) => outcome === accepted).length, "seeds that are accepted").to.be.above(0);
      expect(taken, "changed inputs that are accepted").to.be.below(tried);
      const growth = heapInUse() - heap;
      heap += growth;
      expect(growth).to.be.below(maxGrowth);
      expect(process.memoryUsage().rss - resident).to.be.below(400 * 1_048_576);
      const figures = [slowest.toFixed(0), cpuSeconds.toFixed(0), (growth / 1_024).toFixed(0)];
      rows.push(tableRow([name, tried, taken, reasons.size, ...figures]));
    });
  }
});

/** Reads an input; an error that is no refusal names the input. */
async function outcomeOf({ read }: Subject, input: Buffer, random: Random, round = "kept"): Promise<string> {
  try {
    return await read(input, random);
  } catch (cause) {
    throw new Error(`${round}: ${input.subarray(0, 512).toString("latin1")}`, { cause });
  }
}

function millisecondsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}
