import { expect } from "chai";
import { GatewayError } from "../../core/action/error.ts";
import type { EngineType } from "../../core/config/policy-schema.ts";
import { type OpenedEngine, openEngineFolder } from "../../core/engine/engine-load.ts";
import { readEngine } from "../../core/engine/manifest.ts";
import { acceptUnverified, type VerifiedExtension } from "../../core/trust/verified-extension.ts";
import { EvidenceReader } from "./evidence-reader.ts";
import { siteKey } from "./site.ts";
import { send } from "./wire.ts";

type Files = Readonly<Record<string, string | Uint8Array>>;

/** An unsigned folder of an engine's policies. */
export function engineExtension(folder: Files): VerifiedExtension {
  const files = new Map(Object.entries(folder).map(([name, content]) => [name, Buffer.from(content)]));
  return acceptUnverified({ kind: "engine", files, digest: "sha256:00", signature: undefined }, null);
}

/** Returns why a folder is refused, of the engine that the configuration says, if any. */
export async function engineRefusal(folder: Files, type: EngineType | null = null): Promise<string> {
  const open = async (): Promise<OpenedEngine> => {
    readEngine("folder", type, engineExtension(folder));
    return openEngineFolder("folder", engineExtension(folder));
  };
  const opened = await open().catch((error: unknown) => error);
  if (opened instanceof GatewayError && opened.code === "ENGINE_INVALID") return opened.message;
  throw new Error(`expected the folder to be refused, got ${String(opened)}`);
}

/**
 * Expects, after a call that the folder `notes` blocked for its secret, evidence of the folder and its verdict, and an explanation
 * of the same call that names the rule at `place`.
 */
export async function expectEngineEvidence(adminUrl: string, place: string): Promise<void> {
  const [decision] = await new EvidenceReader(adminUrl, siteKey).recordsOf();
  const engine = decision?.evaluation?.policies.find(({ kind }) => kind === "engine");
  expect(engine).to.include({ kind: "engine", name: "notes", version: "1.0.0", signer: "alice", verdict: "block" });
  const action = { tool: "write_note", target: "local", capability: "write", arguments: { text: "a secret" } };
  const { status, body } = await send(adminUrl, {
    method: "POST",
    target: "/admin/v1/test-action",
    headers: [
      ["x-api-key", siteKey],
      ["content-type", "application/json"],
    ],
    body: JSON.stringify({ ...action, explain: true }),
  });
  expect(status, body).to.equal(200);
  const { evaluation } = JSON.parse(body);
  expect(evaluation).to.deep.include({ decision: "block", rules: ["notes.no-secret"] });
  expect(evaluation.explanation.why).to.include(`\`notes.no-secret\` decides block (engine notes 1.0.0, ${place})`);
}
