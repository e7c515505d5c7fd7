import { readFile, rename } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { issuer, SigstoreWorld, signedAt, subject } from "../../support/sigstore/world.ts";
import { siteConfig, siteKey } from "../../support/site.ts";
import { makeSigner, recordedEvents, TrustWorld, trustEntry } from "../../support/trust-world.ts";

const [alice, bob] = [makeSigner("ed25519"), makeSigner("p256")];
const rulesFile = "packs/open/rules/all.yaml";
const signatureFile = "packs/open/pack.sigstore.json";
const trust = `all_of: [${trustEntry("alice", alice)}]\n`;

describe("a strict gateway that runs", () => {
  let world: TrustWorld;
  let gateway: RunningGateway;

  beforeEach(async () => {
    world = await TrustWorld.make();
    await world.write("trust.yaml", trust);
    await world.sign([alice]);
    gateway = await start();
  });

  afterEach(async () => {
    await gateway.stop();
    await world.remove();
  });

  function start(): Promise<RunningGateway> {
    const more = "extensions: { strict: true, trust_policy: trust.yaml }";
    return startGateway({ folder: world.folder, config: siteConfig({ localLog: world.path("local.jsonl"), more }) });
  }

  it("names the signer in each decision", async () => {
    expect(await signersOfCall()).to.deep.equal(["alice"]);
  });

  it("keeps the last good pack while the new one is altered, takes it once it is signed, and never goes back [S34]", async () => {
    const [oldRules, oldSignature] = await Promise.all([
      readFile(world.path(rulesFile)),
      readFile(world.path(signatureFile)),
    ]);
    const oldManifest = await readFile(world.path("packs/open/pack.yaml"));
    const first = await inForce();
    await replace(rulesFile, oldRules.toString("utf8").replace("message: allowed", "message: yes"));
    await said(/reload_refused/, /file_altered/);
    expect(await inForce()).to.deep.equal(first);

    await world.setSequence(4);
    await world.sign([alice]);
    const second = await until(inForce, ({ digest }) => digest !== first.digest);
    expect(second.signer).to.equal("alice");

    await replace(rulesFile, oldRules);
    await replace("packs/open/pack.yaml", oldManifest);
    await replace(signatureFile, oldSignature);
    await said(/sequence_lower/);
    expect(await inForce()).to.deep.equal(second);
    expect(await signersOfCall()).to.deep.equal(["alice"]);

    await gateway.stop();
    const events = await recordedEvents(world.path("data"), "extension");
    const told = events.map(({ event, check, digest }) => [event, check, digest]);
    expect(told.filter(([event]) => event !== "refused")).to.deep.equal([
      ["loaded", undefined, first.digest],
      ["unloaded", undefined, first.digest],
      ["loaded", undefined, second.digest],
    ]);
    const refused = told.filter(([event]) => event === "refused").map(([, check]) => check);
    expect(refused).to.include("file_altered").and.to.include("sequence_lower");
  });

  it("lets a signer that may only tighten allow nothing", async () => {
    const agent = new Agent(gateway.url, siteKey, "tightened");
    const call = async (): Promise<string> => JSON.stringify((await agent.call("list_notes")).result);
    expect(await call()).to.include("welcome");
    await replace("trust.yaml", `all_of: [${trustEntry("alice", alice, "tighten_only: true")}]\n`);
    expect(await until(call, (text) => text.includes("Blocked"))).not.to.include("welcome");
    await agent.hangUp();
  });

  it("takes up a changed trust policy, and says when it no longer trusts what is in force", async () => {
    await replace("trust.yaml", `${trust}revoked: { keys: ["${alice.id}"] }\n`);
    await said(/reload_refused/, /key_revoked/);
    await replace("trust.yaml", `any_of: { signers: [${trustEntry("robert", bob)}] }\n`);
    await said(/signers_missing/);
    await world.sign([bob]);
    expect(await until(inForce, ({ signer }) => signer === "robert")).to.include({ signer: "robert" });
  });

  it("takes up a changed trusted root: an identity is taken on the word of those it names", async () => {
    const sigstore = new SigstoreWorld();
    const identity = `{ issuer: "${issuer}", subject: { equal: "${subject}" } }`;
    await replace("root.json", sigstore.trustedRoot());
    await replace("packs/open/pack.sigstore.json", sigstore.sign(await world.statement()));
    await replace("trust.yaml", `trusted_root: root.json\nall_of: [{ name: release, identity: ${identity} }]\n`);
    await gateway.stop();
    gateway = await start();
    const first = await inForce();
    expect(first.signer).to.equal("release");
    await replace("root.json", new SigstoreWorld().trustedRoot());
    await said(/reload_refused/, /timestamp_invalid/);
    expect(await inForce()).to.deep.equal(first);
    await gateway.stop();
    const events = await recordedEvents(world.path("data"), "extension");
    expect(events.findLast(({ event }) => event === "loaded")?.identities).to.deep.equal([
      { signer: "release", issuer, subject, signed_at: signedAt.toISOString() },
    ]);
    expect(events.at(-1)).to.include({ event: "refused", check: "timestamp_invalid" });
  });

  async function replace(name: string, text: string | Uint8Array): Promise<void> {
    await world.write("next", text);
    await rename(world.path("next"), world.path(name));
  }

  async function inForce(): Promise<{
    readonly kind: string;
    readonly digest: string;
    readonly signer: string | null;
  }> {
    const response = await fetch(`${gateway.adminUrl}/admin/v1/policies`, { headers: { "x-api-key": siteKey } });
    const { items } = (await response.json()) as { items: readonly Awaited<ReturnType<typeof inForce>>[] };
    const pack = items.find(({ kind }) => kind === "pack");
    if (pack === undefined) throw new Error("expected a pack in force");
    return pack;
  }

  async function signersOfCall(): Promise<readonly (string | null)[]> {
    const agent = new Agent(gateway.url, siteKey, "signed");
    expect((await agent.call("list_notes")).status).to.equal(200);
    await agent.hangUp();
    const records = await new EvidenceReader(gateway.adminUrl, siteKey).recordsOf((label) => label === "signed");
    const policies = records[0]?.evaluation?.policies ?? [];
    return policies.filter(({ kind }) => kind === "pack").map(({ signer }) => signer);
  }

  async function said(...patterns: readonly RegExp[]): Promise<void> {
    await until(
      async () => gateway.stderr(),
      (log) => patterns.every((pattern) => pattern.test(log)),
    );
  }
});

async function until<T>(read: () => Promise<T>, good: (value: T) => boolean): Promise<T> {
  for (const end = performance.now() + 60_000; performance.now() < end; await sleep(20)) {
    const value = await read();
    if (good(value)) return value;
  }
  throw new Error("expected it within 10 s");
}
