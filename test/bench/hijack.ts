/** Takes the scripts of `test/corpus/hijack` through a gateway, with and without manifests, and prints what became of them. */
import { corpusUpstreams, hijackCorpus } from "../support/hijack-corpus.ts";
import { type CorpusRun, corpusPacks, runCorpus } from "../support/hijack-run.ts";
import { WatchedSite } from "../support/watched-site.ts";

const benign = hijackCorpus.map((script) => script.benign);
const hijacked = hijackCorpus.flatMap((script) => script.hijacked);

for (const hasManifest of [true, false]) {
  const site = await WatchedSite.open({
    upstreams: corpusUpstreams,
    packs: corpusPacks,
    agents: benign.length + hijacked.length,
  });
  try {
    print(hasManifest ? "with a manifest for each session" : "without manifests, by value");
    print("| suite | scripts | hijacked sessions | stopped | benign sessions asked |");
    print("|---|---|---|---|---|");
    const runs = {
      hijacked: await runCorpus(site, hijacked, hasManifest),
      benign: await runCorpus(site, benign, hasManifest),
    };
    for (const suite of Object.keys(corpusUpstreams)) {
      const of = (all: readonly CorpusRun[]): readonly CorpusRun[] => all.filter((run) => run.suite === suite);
      printRow(suite, of(runs.hijacked), of(runs.benign));
    }
    printRow("all", runs.hijacked, runs.benign);
    for (const { suite, name } of runs.hijacked.filter((run) => run.harmed)) print(`not stopped: ${suite}, ${name}`);
    for (const { suite, name } of runs.benign.filter((run) => run.asked)) print(`asked: ${suite}, ${name}`);
    print("");
  } finally {
    await site.stop();
  }
}

function printRow(suite: string, attacked: readonly CorpusRun[], honest: readonly CorpusRun[]): void {
  const stopped = attacked.filter((run) => !run.harmed).length;
  const asked = honest.filter((run) => run.asked).length;
  print(`| ${suite} | ${honest.length} | ${attacked.length} | ${share(stopped, attacked)} | ${share(asked, honest)} |`);
}

function share(count: number, all: readonly CorpusRun[]): string {
  return `${count} (${((100 * count) / all.length).toFixed(1)} %)`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
