import { execFile } from "node:child_process";
import { copyFile, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { BundleReport } from "../../../core/evidence/bundle/verify.ts";
import type { VerifyReport } from "../../../core/evidence/verify/verification.ts";
import type { WitnessComparison } from "../../../core/evidence/witness/witness-publisher.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { Agent } from "../../support/agent.ts";
import { runCommand } from "../../support/command-host.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import type { Finished } from "../../unit/cli/run.ts";

describe("a gateway on a data folder that was pruned", () => {
  let folder: string;
  let notes: string;
  let early: string;
  let upstream: Recorder;
  let gateway: RunningGateway;
  let pruned: { readonly records: number; readonly first_kept: number };

  // One day: `old` ends, the witness is told; `long` begins; the cut; `long` goes on, `young` begins.
  before(async () => {
    [folder, notes, early] = (await Promise.all(
      ["gateway-prune-", "notes-", "early-"].map((name) => mkdtemp(join(tmpdir(), name))),
    )) as [string, string, string];
    upstream = await startRecorder();
    gateway = await start();
    for (let count = 0; count < 130; count++) await act("old");
    await gateway.stop();
    await copyNotes(notes, early);
    gateway = await start();
    await act("long");
    await sleep(20);
    const cut = new Date().toISOString();
    await sleep(20);
    await act("long");
    await act("young");
    await gateway.stop();
    await copyNotes(early, notes);
    const args = ["--data", data(), "--tenant", "acme", "--before", cut, "--json"];
    const { code, stdout, stderr } = await runCommand(["evidence", "prune", ...args]);
    expect(code, stderr).to.equal(0);
    pruned = JSON.parse(stdout);
    gateway = await start();
  });

  after(async () => {
    await gateway.stop();
    await upstream.stop();
    for (const each of [folder, notes, early]) await rm(each, { recursive: true, force: true });
  });

  it("starts, verifies, lists what is left, and goes on recording", async () => {
    expect(pruned.records).to.be.above(260);
    const reader = new EvidenceReader(gateway.adminUrl, siteKey);
    expect(await reader.verify()).to.deep.include({ ok: true, firstKept: pruned.first_kept });
    expect((await reader.sessions()).map(({ label }) => label)).to.deep.equal(["young", "long"]);
    expect((await reader.recordsOf()).map(({ effect }) => effect)).to.deep.equal([
      ...["dispatched", "success"],
      ...["dispatched", "success"],
    ]);
    const before = (await upstream.calls()).length;
    for (const label of ["long", "old"]) await act(label);
    expect((await upstream.calls()).length).to.equal(before + 2);
    expect((await reader.sessions()).map(({ label }) => label)).to.deep.equal(["old", "young", "long"]);
    expect(await reader.verify()).to.include({ ok: true });
  });

  it("is still compared with what its witness saw, be it of the pruned part", async () => {
    const response = await fetch(`${gateway.adminUrl}/admin/v1/evidence/verify`, {
      method: "POST",
      headers: { "x-api-key": siteKey },
    });
    const report = (await response.json()) as VerifyReport & { readonly witnesses: readonly WitnessComparison[] };
    expect(report.witnesses).to.have.lengthOf(1);
    expect(report).to.deep.include({ ok: true });
    expect(report.witnesses[0]?.verdict).to.equal("consistent");
  });

  for (const [label, verdict, reason] of [
    ["young", "self-attested", undefined],
    ["long", "incomplete", "session_gap"],
  ] as const) {
    it(`exports the session \`${label}\` as ${verdict}, by both verifiers`, async () => {
      const sessions = await new EvidenceReader(gateway.adminUrl, siteKey).sessions();
      const id = sessions.find((each) => each.label === label)?.id ?? "";
      const path = join(early, `${label}.jsonl`);
      const env = { GATEWAY_API_KEY: siteKey };
      const exported = await runCommand(["evidence", "export", id, "--file", path, "--admin", gateway.adminUrl], env);
      expect(exported.code, exported.stderr).to.equal(0);
      const ours = await runCommand(["evidence", "verify", path, "--json"]);
      const theirs = await python(path);
      for (const { code, stdout } of [ours, theirs]) {
        const report = JSON.parse(stdout) as BundleReport;
        expect([report.verdict, report.exit, report.first_bad?.reason]).to.deep.equal([verdict, code, reason]);
      }
    });
  }

  it("is witnessed offline by a note about a size of the pruned part", async () => {
    await gateway.stop();
    try {
      const args = ["evidence", "verify", "--data", data(), "--tenant", "acme", "--witness", early, "--json"];
      const { code, stdout } = await runCommand(args);
      expect([code, JSON.parse(stdout).chains[0].first_kept], stdout).to.deep.equal([0, pruned.first_kept]);
    } finally {
      gateway = await start();
    }
  });

  function data(): string {
    return join(folder, "data");
  }

  function start(): Promise<RunningGateway> {
    const more = `evidence: { witnesses: [{ name: vault, type: file, path: ${notes}, interval_ms: 1000 }] }`;
    return startGateway({
      alone: true,
      config: siteConfig({ remoteUrl: upstream.url, more }),
      files: siteFiles(),
      folder,
    });
  }

  async function act(label: string): Promise<void> {
    const agent = new Agent(gateway.url, siteKey, label);
    const { status } = await agent.call("echo", { text: label });
    expect(status).to.equal(200);
    await agent.hangUp();
  }
});

/** The notes about chains; those about the list of chains stay as they are. */
async function copyNotes(from: string, to: string): Promise<void> {
  const names = (await readdir(from)).filter((name) => name.endsWith(".notes") && !name.startsWith("meta"));
  for (const name of names) await copyFile(join(from, name), join(to, name));
}

function python(bundle: string): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const program = join(repositoryRoot, "sdk", "evidence", "verify.py");
    const child = execFile("python3", [program, bundle], { timeout: 20_000 }, (_error, stdout, stderr) => {
      if (child.exitCode === null) reject(new Error(`expected an exit code, got the signal ${child.signalCode}`));
      else resolve({ code: child.exitCode, stdout, stderr });
    });
  });
}
