import { expect } from "chai";
import { corpusUpstreams, hijackCorpus } from "../../support/hijack-corpus.ts";
import { type CorpusRun, corpusPacks, runCorpus } from "../../support/hijack-run.ts";
import { WatchedSite } from "../../support/watched-site.ts";

const benign = hijackCorpus.map((script) => script.benign);
const hijacked = hijackCorpus.flatMap((script) => script.hijacked);
/** One variant of each script. */
const some = hijackCorpus.flatMap((script, index) => script.hijacked.slice(index % 3, (index % 3) + 1));

describe("hijacked sessions of seven suites [S61]", () => {
  let site: WatchedSite;

  before(async () => {
    const agents = benign.length + hijacked.length;
    site = await WatchedSite.open({ upstreams: corpusUpstreams, packs: corpusPacks, agents: 2 * agents });
  });
  after(() => site.stop());

  const shareOf = (runs: readonly CorpusRun[], is: (run: CorpusRun) => boolean): number =>
    runs.filter(is).length / runs.length;
  const named = (runs: readonly CorpusRun[]): string => runs.map(({ suite, name }) => `${suite}, ${name}`).join("; ");

  it("are of at least 100 scripts", () => {
    expect(hijackCorpus.length).to.be.at.least(100);
    expect(new Set(benign.map(({ suite }) => suite)).size).to.be.at.least(5);
  });

  it("are stopped 98 times of 100 with manifests, and no benign one is asked about anything", async () => {
    const runs = await runCorpus(site, some, true);
    const harmed = runs.filter((run) => run.harmed);
    expect(1 - harmed.length / runs.length, named(harmed)).to.be.at.least(0.98);
    const asked = (await runCorpus(site, benign, true)).filter((run) => run.asked);
    expect(named(asked)).to.equal("");
  }).timeout(600_000);

  it("are stopped 95 times of 100 without manifests, by value, and of benign ones 15 of 100 are asked about something", async () => {
    const runs = await runCorpus(site, hijacked, false);
    const harmed = runs.filter((run) => run.harmed);
    expect(1 - harmed.length / runs.length, named(harmed)).to.be.at.least(0.95);
    const honest = await runCorpus(site, benign, false);
    expect(
      shareOf(honest, (run) => run.asked),
      named(honest.filter((run) => run.asked)),
    ).to.be.at.most(0.15);
    for (const { name, results, asked } of honest) {
      if (!asked)
        expect(
          results.every(({ reached }) => reached),
          name,
        ).to.equal(true);
    }
  }).timeout(600_000);
});
