import { type FactEntry, factCorpus } from "../support/fact-corpus.ts";
import * as git from "./fact/git.ts";
import * as path from "./fact/path.ts";
import * as shell from "./fact/shell.ts";
import * as sql from "./fact/sql.ts";
import * as url from "./fact/url.ts";
import { tableHead, tableRow } from "./table.ts";

/** What the facts say of the corpora of bypasses and near misses, and the processor time of an input. */
const rounds = Number(process.env.BENCH_ROUNDS ?? 5);
const verdicts = ["allowed", "asked", "blocked"] as const;

type Judge = (entry: FactEntry) => (typeof verdicts)[number];

process.stdout.write(`node ${process.version}, ${rounds} rounds after one\n\n`);
process.stdout.write(tableHead(["kind", "label", "inputs", ...verdicts, "µs of processor an input"]));
for (const { name, judge } of [shell, git, sql, url, path]) {
  const corpus = factCorpus(name);
  for (const label of ["harmful", "near"]) {
    const entries = corpus.filter((entry) => entry.label === label);
    const judged = entries.map((entry) => judge(entry));
    const counts = verdicts.map((verdict) => judged.filter((given) => given === verdict).length);
    process.stdout.write(tableRow([name, label, entries.length, ...counts, leastUs(entries, judge).toFixed(0)]));
  }
}

/** The least of the rounds, so that what else the machine does counts little. */
function leastUs(entries: readonly FactEntry[], judge: Judge): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const start = process.cpuUsage();
    for (const entry of entries) judge(entry);
    const { user, system } = process.cpuUsage(start);
    least = Math.min(least, (user + system) / entries.length);
  }
  return least;
}
