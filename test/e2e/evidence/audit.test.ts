import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { recordKey } from "../../../core/evidence/record/key-space.ts";
import { openStore } from "../../../core/store/open.ts";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";

describe("POST /admin/v1/audit/verify", () => {
  let folder: string;
  let upstream: Recorder;
  let gateway: RunningGateway;
  let reader: EvidenceReader;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-audit-"));
    upstream = await startRecorder();
    await start();
  });

  after(async () => {
    await gateway.stop();
    await upstream.stop();
    await rm(folder, { recursive: true });
  });

  async function start(): Promise<void> {
    gateway = await startGateway({
      alone: true,
      folder,
      config: siteConfig({ remoteUrl: upstream.url }),
      files: siteFiles(),
    });
    reader = new EvidenceReader(gateway.adminUrl, siteKey);
  }

  async function act(): Promise<number> {
    const agent = new Agent(gateway.url, siteKey, "audited");
    const { status } = await agent.call("echo", { amount: 10 });
    await agent.hangUp();
    return status;
  }

  it("says how many records are sound, and which the last one is [R4.2-5]", async () => {
    expect(await act()).to.equal(200);
    const { ok, tenant, records, head } = await reader.verify();
    const [decision, outcome] = await reader.recordsOf();
    expect([ok, tenant, head?.seq]).to.deep.equal([true, "acme", records - 1]);
    expect([decision?.seq, outcome?.seq]).to.deep.equal([records - 2, records - 1]);
  });

  it("names the record that was changed on disk, and runs nothing more for its tenant [R4.2-5, S64]", async () => {
    const [decision] = await reader.recordsOf();
    const seq = decision?.seq ?? -1;
    for (let turn = 0; turn < 130; turn++) expect(await act()).to.equal(200); // a start reads the last 256 at most
    await gateway.stop();
    await changeRecord(seq);
    await start();
    const calls = (await upstream.calls()).length;
    const { ok, records, head, firstBad } = await reader.verify();
    expect([ok, records, head]).to.deep.equal([false, seq + 1, null]);
    expect(firstBad).to.deep.include({ seq: seq + 1, reason: "bad_prev_hash" });
    expect(await act()).to.equal(503);
    expect(await upstream.calls()).to.have.length(calls);
  });

  async function changeRecord(seq: number): Promise<void> {
    const store = await openStore({ dir: join(folder, "data"), enabled: true });
    const text = (await store.get(recordKey("acme", seq))) ?? "";
    await store.put(recordKey("acme", seq), text.replace('"tool":"echo"', '"tool":"ohce"'));
    await store.close();
  }
});
