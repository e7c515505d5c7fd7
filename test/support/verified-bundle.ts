import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { readBundle } from "../../core/evidence/bundle/bundle-line.ts";
import type { EvidenceRecord } from "../../core/evidence/record/record.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { runCommand } from "./command-host.ts";
import { send } from "./wire.ts";

/** The records of a session's bundle, exported by the command line, once both verifiers have found it sound. */
export async function exportVerified(
  adminUrl: string,
  key: string,
  session: string,
): Promise<readonly EvidenceRecord[]> {
  const folder = await mkdtemp(join(tmpdir(), "verified-bundle-"));
  try {
    const bundle = join(folder, "bundle.jsonl");
    const exportLine = ["evidence", "export", session, "--file", bundle, "--admin", adminUrl];
    const exported = await runCommand(exportLine, { GATEWAY_API_KEY: key });
    expect(exported.code, exported.stderr).to.equal(0);
    const headers = [["x-api-key", key]] as const;
    const { body } = await send(adminUrl, { target: "/admin/v1/evidence/checkpoint", headers });
    const trusted = (JSON.parse(body) as { keys: [{ public_key: string }] }).keys[0].public_key;
    const ours = await runCommand(["evidence", "verify", bundle, "--key", trusted]);
    expect(ours.code, ours.stdout).to.equal(selfAttested);
    const verifier = join(repositoryRoot, "sdk/evidence/verify.py");
    expect(await run("python3", [verifier, bundle, "--key", trusted])).to.equal(selfAttested);
    return readBundle(await readFile(bundle)).entries.map(({ record }) => record);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const selfAttested = 10;

function run(command: string, args: readonly string[]): Promise<number | string | null> {
  return new Promise((resolve) => {
    execFile(command, args, (error) => resolve(error === null ? 0 : (error.code ?? null)));
  });
}
