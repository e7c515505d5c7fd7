import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Agent, type Answer } from "../support/agent.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { type Recorder, startRecorder } from "../support/recorder.ts";
import { siteConfig, siteFiles, siteKey } from "../support/site.ts";

describe("a gateway whose lock is taken from under it", () => {
  let folder: string;
  let upstream: Recorder;
  let first: RunningGateway;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-lock-"));
    upstream = await startRecorder();
    first = await startGateway({ folder, config: siteConfig({ remoteUrl: upstream.url }), files: siteFiles() });
  });

  after(async () => {
    await first.stop();
    await upstream.stop();
    await rm(folder, { recursive: true });
  });

  it("runs nothing more while the other holds the store, and what it had acknowledged stays [S65]", async () => {
    const agent = new Agent(first.url, siteKey);
    expectAnswered(await agent.call("echo", { mark: "before" }));
    for (const database of ["state", "state/records"]) await rm(join(folder, "data", database, "LOCK"));
    const second = await startGateway({ folder, config: siteConfig({ remoteUrl: upstream.url }), files: siteFiles() });
    try {
      for (const mark of ["during", "still"]) {
        const { status, error } = await agent.call("echo", { mark });
        expect([status, error?.data?.code]).to.deep.equal([503, "EVIDENCE_UNAVAILABLE"]);
      }
      expect(await (await fetch(`${first.url}/health`)).json()).to.include({ status: "degraded" });
      const other = new Agent(second.url, siteKey);
      expectAnswered(await other.call("echo", { mark: "after" }));
      await other.hangUp();
      const calls = (await upstream.calls()).map(({ body }) => JSON.parse(body).params.arguments.mark as string);
      expect(calls).to.deep.equal(["before", "after"]);
      const reader = new EvidenceReader(second.adminUrl, siteKey);
      expect((await reader.verify()).ok).to.equal(true);
      expect((await reader.recordsOf(() => true)).filter(({ effect }) => effect === "success")).to.have.length(2);
    } finally {
      await agent.hangUp();
      await second.stop();
    }
  });
});

function expectAnswered(answer: Answer): void {
  expect([answer.status, answer.result?.isError ?? false], JSON.stringify(answer)).to.deep.equal([200, false]);
}
