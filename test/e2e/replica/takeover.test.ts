import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { ReplicaGroup } from "../../support/replica-group.ts";
import { readCalls, siteConfig, siteFiles, siteKey } from "../../support/site.ts";

describe("three replicas on one database", () => {
  let folder: string;
  let localLog: string;
  let group: ReplicaGroup;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "replica-site-"));
    localLog = join(folder, "local.jsonl");
    group = await ReplicaGroup.create({ config: siteConfig({ localLog }), files: siteFiles(), leaseMs: 2_000 });
    for (const index of [0, 1, 2]) await group.start(index);
  });

  after(async () => {
    await group.stop();
    await rm(folder, { recursive: true });
  });

  it("serve a call at each of them, and keep one chain", async () => {
    for (const [index, member] of group.members.entries()) {
      const agent = new Agent(member.url, siteKey, `at-${index}`);
      const answer = await agent.call("echo", { text: `from ${index}` });
      expect(answer.result?.isError, JSON.stringify(answer)).to.not.equal(true);
      await agent.hangUp();
    }
    const reports = await Promise.all(
      group.members.map(({ adminUrl }) => new EvidenceReader(adminUrl, siteKey).verify()),
    );
    for (const report of reports) expect(report).to.include({ ok: true });
    expect(await readCalls(localLog)).to.have.length(3);
  });
});
