import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { filesWith } from "../../support/disk-search.ts";
import { HeldSite, overHttp, toldOf } from "../../support/held-site.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";

describe("approvals and state.enabled", () => {
  let upstream: Recorder;
  let folder: string;
  let site: HeldSite;
  let approved: string;
  let pending: string;

  beforeEach(async () => {
    upstream = await startRecorder();
    folder = await mkdtemp(join(tmpdir(), "approval-state-"));
  });

  afterEach(async () => {
    await site.stop();
    await upstream.stop();
    await rm(folder, { recursive: true });
  });

  /** Starts a gateway and has one call approved and used, one approved, one waiting; `stopped` is run before the next start. */
  async function restart(enabled: boolean, stopped: () => Promise<void>): Promise<void> {
    const more = `state: { enabled: ${enabled} }`;
    site = new HeldSite({ upstreams: [overHttp("recorder", upstream.url)], more, folder, alone: true });
    await site.start();
    await site.holdAndApprove("echo", { to: "used" });
    expect((await site.call("echo", { to: "used" })).result?.isError).to.not.equal(true);
    approved = await site.holdAndApprove("echo", { to: "approved" });
    pending = await site.hold("echo", { to: "pending" });
    await site.stop();
    await stopped();
    await site.start();
  }

  it("true: they lie in the embedded database, and outlive the process [R1.1-32]", async () => {
    await restart(true, async () => {
      for (const id of [approved, pending]) {
        const files = await filesWith(join(folder, "data"), id);
        expect(files.filter((file) => file.startsWith("state/"))).to.not.deep.equal([]);
      }
    });
    expect((await site.show(pending)).state).to.equal("pending");
    expect((await site.call("echo", { to: "approved" })).result?.isError).to.not.equal(true);
    expect(await upstream.calls()).to.have.length(2);
    expect((await site.show(approved)).state).to.equal("consumed");
  });

  it("false: they end with the process, and nothing is written to disk [R1.1-32]", async () => {
    let before: readonly string[] = [];
    await restart(false, async () => {
      before = await readdir(folder, { recursive: true });
    });
    expect(before.filter((path) => path !== "gateway.yaml" && !/^packs(?:\/|$)/.test(path))).to.deep.equal([]);
    for (const id of [approved, pending]) expect((await site.review(id, "approve")).status).to.equal(404);
    expect(toldOf(await site.call("echo", { to: "approved" })).approval?.id).to.not.equal(approved);
    expect(await upstream.calls()).to.have.length(1);
  });
});
