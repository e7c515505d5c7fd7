import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { VerifyingKey } from "../../../core/action/signing-key.ts";
import { isCheckpointSignedBy, parseCheckpoint } from "../../../core/evidence/tree/checkpoint.ts";
import type { VerifyReport } from "../../../core/evidence/verify/verification.ts";
import type { PublishedCheckpoint, WitnessComparison } from "../../../core/evidence/witness/witness-publisher.ts";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { rejection } from "../../support/ledger-world.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { removeTenant } from "../../support/remove-tenant.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";

describe("a gateway with a witness", () => {
  let folder: string;
  let notes: string;
  let upstream: Recorder;
  let gateway: RunningGateway;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-witness-"));
    notes = await mkdtemp(join(tmpdir(), "witness-notes-"));
    upstream = await startRecorder();
    gateway = await start();
  });

  afterEach(async () => {
    await gateway.stop();
    await upstream.stop();
    await rm(folder, { recursive: true });
    await rm(notes, { recursive: true, force: true });
  });

  /** `others`: further entries of `keys`, each with a comma. */
  function start(others = ""): Promise<RunningGateway> {
    const more = `evidence: { witnesses: [{ name: vault, type: file, path: ${notes}, interval_ms: 1000 }] }`;
    const config = siteConfig({ remoteUrl: upstream.url, more }).replace("keys: [", `keys: [${others}`);
    return startGateway({ config, files: siteFiles(), folder });
  }

  async function ask<T>(method: string, path: string): Promise<{ readonly status: number; readonly body: T }> {
    const response = await fetch(`${gateway.adminUrl}/admin/v1/evidence/${path}`, {
      method,
      headers: { "x-api-key": siteKey },
    });
    return { status: response.status, body: (await response.json()) as T };
  }

  async function act(): Promise<void> {
    const agent = new Agent(gateway.url, siteKey);
    await agent.call("echo", {});
    await agent.hangUp();
  }

  async function witnessed(): Promise<{ readonly ok: boolean; readonly witnesses: readonly WitnessComparison[] }> {
    return (await ask<{ ok: boolean; witnesses: readonly WitnessComparison[] }>("POST", "verify")).body;
  }

  it("publishes a checkpoint that its tenant can check, and tells the witness when it stops [R1.1-20]", async () => {
    await act();
    const { body } = await ask<PublishedCheckpoint>("GET", "checkpoint");
    const checkpoint = parseCheckpoint(body.note);
    const key = VerifyingKey.parse(body.keys[0]?.public_key ?? "");
    if (checkpoint === undefined || key === undefined) throw new Error("expected a checkpoint and its key");
    expect(isCheckpointSignedBy(checkpoint, [key])).to.equal(true);
    await gateway.stop();
    const text = await readFile(join(notes, `${checkpoint.chain}.notes`), "utf8");
    expect(Number(text.match(/^\d+$/gm)?.at(-1))).to.be.at.least(checkpoint.size);
    gateway = await start();
    expect(await witnessed()).to.deep.include({ ok: true });
  });

  it("refuses, at a start on an older copy of its whole data folder, what the witness contradicts", async () => {
    await gateway.stop();
    const copy = `${folder}-copy`;
    await cp(folder, copy, { recursive: true });
    gateway = await start();
    await act();
    await gateway.stop();
    await rm(folder, { recursive: true });
    await cp(copy, folder, { recursive: true });
    await rm(copy, { recursive: true });
    const refused = await rejection(start());
    expect(refused.message).to.match(/tenant `acme` is behind its witness `vault`: expected \d+ records, got \d+/);
    await rm(notes, { recursive: true });
    gateway = await start(); // without its witness, the copy cannot be told from the truth
    expect(await witnessed()).to.deep.include({ ok: true });
  });

  it("refuses, while it runs, a chain that its witness contradicts", async () => {
    await act();
    const { body } = await ask<PublishedCheckpoint>("GET", "checkpoint");
    await sleep(1_200);
    const chain = parseCheckpoint(body.note)?.chain;
    const file = join(notes, `${chain}.notes`);
    await writeFile(file, (await readFile(file, "utf8")).replaceAll(/^\d+$/gm, "900000"));
    const { ok, witnesses } = await witnessed();
    expect({ ok, witnesses }).to.deep.equal({
      ok: false,
      witnesses: [{ witness: "vault", verdict: "behind", size: 900_000 }],
    });
    const before = (await upstream.calls()).length;
    await act();
    expect(await upstream.calls(), "nothing is dispatched").to.have.length(before);
  });

  it("says, of a tenant that was removed whole, that the witness has seen its chain, and runs nothing for it", async () => {
    await act();
    await gateway.stop();
    await removeTenant(join(folder, "data"), "acme");
    expect((await rejection(start())).message, "with no tenant left").to.include("is gone: witness `vault` has seen");
    gateway = await start(`{ id: other, tenant: globex, role: viewer, key_hash: "sha256:${"0".repeat(64)}" }, `);
    const before = (await upstream.calls()).length;
    const { body, status } = await ask<VerifyReport & { witnesses: readonly WitnessComparison[] }>("POST", "verify");
    const [{ size = 0 } = {}] = body.witnesses;
    expect([status, body.ok, body.records, size >= 4]).to.deep.equal([200, false, 0, true]);
    expect(body.refused).to.match(/^chain of tenant `acme` is gone: witness `vault` has seen \d+ records of it$/);
    expect(body.witnesses).to.deep.equal([{ witness: "vault", verdict: "behind", size }]);
    const audit = await new EvidenceReader(gateway.adminUrl, siteKey).verify();
    expect([audit.ok, audit.refused]).to.deep.equal([false, body.refused]);
    await act();
    expect(await upstream.calls(), "nothing is dispatched").to.have.length(before);
  });

  it("serves on while the witness is down, and says so in log and metrics", async () => {
    await rm(notes, { recursive: true });
    await writeFile(notes, "not a folder any more");
    const calls = (await upstream.calls()).length;
    await sleep(1_200);
    await act();
    expect(await upstream.calls()).to.have.length(calls + 1);
    expect((await witnessed()).witnesses).to.deep.equal([{ witness: "vault", verdict: "unreachable" }]);
    expect(gateway.stderr()).to.include("witness_publish_failed");
    const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text();
    expect(metrics).to.match(/gateway_witness_pushes_total\{result="failed"\} [1-9]/);
    await rm(notes);
  });

  it("leaves nothing of a tenant's name or actions with the witness", async () => {
    await act();
    await gateway.stop();
    const files = await readdir(notes);
    const all = await Promise.all(files.map((name) => readFile(join(notes, name), "utf8")));
    expect(files.length).to.be.at.least(2);
    for (const word of ["acme", "echo", "tenant"]) expect(files.join() + all.join()).to.not.include(word);
    gateway = await start();
  });
});
