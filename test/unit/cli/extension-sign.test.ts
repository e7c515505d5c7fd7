import { rm } from "node:fs/promises";
import { bundleToJSON } from "@sigstore/bundle";
import { DSSEBundleBuilder, FulcioSigner, RekorWitness, TSAWitness } from "@sigstore/sign";
import { expect } from "chai";
import { contentDigest, sha256Hex } from "../../../core/action/canonical-json.ts";
import { payloadType } from "../../../core/trust/statement.ts";
import { runCommand } from "../../support/command-host.ts";
import { SigstoreService } from "../../support/sigstore/service.ts";
import { issuer, SigstoreWorld, signedAt, subject } from "../../support/sigstore/world.ts";
import { makeSigner, TrustWorld } from "../../support/trust-world.ts";
import type { Finished } from "./run.ts";

const sigstore = new SigstoreWorld();
const ada = makeSigner();
const trust = `trusted_root: root.json
any_of:
  minimum: 2
  signers:
    - { name: ada, key: "${ada.spki}" }
    - { name: release, identity: { issuer: "${issuer}", subject: { equal: "${subject}" } } }
`;

describe("gateway pack sign --bundle", () => {
  let world: TrustWorld;

  beforeEach(async () => {
    world = await TrustWorld.make();
    await world.write("root.json", sigstore.trustedRoot());
    await world.write("trust.yaml", trust);
    await world.write("ada.pem", ada.pem);
  });

  afterEach(() => world.remove());

  function pack(command: string, ...args: readonly string[]): Promise<Finished> {
    const isFile = (arg: string): boolean => /^[a-z]+\.[a-z]+$/.test(arg);
    return runCommand(["pack", command, world.pack, ...args.map((arg) => (isFile(arg) ? world.path(arg) : arg))]);
  }

  /** What a tool that signs with a certificate makes of the statement, in its own spacing. */
  async function signElsewhere(statement: string): Promise<void> {
    const bundle = JSON.parse(sigstore.sign(Buffer.from(statement))) as object;
    await world.write("bundle.json", JSON.stringify(bundle, null, 2));
  }

  it("adds what another tool signed to what a key signed, in either order", async () => {
    const added = { ok: true, name: "open", version: "1.0.0", issuer, subject };
    await signElsewhere((await pack("sign", "--statement")).stdout);
    const first = await pack("sign", "--bundle", "bundle.json", "--json");
    expect(JSON.parse(first.stdout)).to.include({ ...added, signatures: 1 });
    expect(await pack("sign", "--key", "ada.pem")).to.include({ code: 0 });
    expect(await pack("verify", "--trust", "trust.yaml")).to.include({ code: 0 });

    await rm(world.path("packs/open/pack.sigstore.json"));
    expect(await pack("sign", "--key", "ada.pem")).to.include({ code: 0 });
    await signElsewhere((await pack("sign", "--statement")).stdout);
    const second = await pack("sign", "--bundle", "bundle.json");
    expect(second.stdout).to.include(`signed by ${subject} of ${issuer}, 2 in all`);
    expect(await pack("verify", "--trust", "trust.yaml")).to.include({ code: 0 });
  });

  it("adds what the client of Sigstore signed, with a certificate, a time stamp and a log's entry over the wire", async () => {
    const service = await SigstoreService.start(sigstore);
    const { url } = service;
    const claims = Buffer.from(JSON.stringify({ sub: subject })).toString("base64url");
    const identityProvider = { getToken: async (): Promise<string> => `e30.${claims}.` };
    const client = new DSSEBundleBuilder({
      signer: new FulcioSigner({ fulcioBaseURL: url, identityProvider }),
      witnesses: [new TSAWitness({ tsaBaseURL: url }), new RekorWitness({ rekorBaseURL: url, entryType: "dsse" })],
    });
    const { stdout } = await pack("sign", "--statement");
    const signing = client.create({ data: Buffer.from(stdout), type: payloadType });
    const bundle = await signing.finally(() => service.stop());
    await world.write("bundle.json", JSON.stringify(bundleToJSON(bundle)));
    await world.write("root.json", sigstore.trustedRoot({ logs: [sigstore.log] }));
    expect(await pack("sign", "--bundle", "bundle.json")).to.include({ code: 0, stderr: "" });
    expect(await pack("sign", "--key", "ada.pem")).to.include({ code: 0, stderr: "" });
    const verified = await pack("verify", "--trust", "trust.yaml");
    expect(verified.stdout).to.include(`release: ${subject} of ${issuer}, at ${signedAt.toISOString()}`);
  });

  it("lets `verify` and `inspect` tell who signed, when, and how it was built", async () => {
    const rules = sha256Hex(Buffer.from("x"));
    const build = JSON.stringify({
      _type: "https://in-toto.io/Statement/v1",
      subject: [{ name: "x", digest: { sha256: rules } }],
      predicateType: "https://slsa.dev/provenance/v1",
      predicate: { runDetails: { builder: { id: "https://ci.example/builder" } } },
    });
    await world.write("packs/open/x.md", "x");
    await world.write("packs/open/build.intoto.json", build);
    await signElsewhere((await pack("sign", "--statement")).stdout);
    await pack("sign", "--bundle", "bundle.json");
    await pack("sign", "--key", "ada.pem");

    const verified = await pack("verify", "--trust", "trust.yaml");
    expect(verified.stdout.split("\n").slice(1)).to.deep.equal([
      `release: ${subject} of ${issuer}, at ${signedAt.toISOString()}`,
      `build: ${contentDigest(build)}, https://slsa.dev/provenance/v1, by https://ci.example/builder`,
      "",
    ]);
    const told = await pack("verify", "--trust", "trust.yaml", "--json");
    const built = { digest: contentDigest(build), predicate_type: "https://slsa.dev/provenance/v1" };
    expect(JSON.parse(told.stdout)).to.deep.include({
      signers: ["ada", "release"],
      identities: [{ signer: "release", issuer, subject, signed_at: signedAt.toISOString() }],
      build: { ...built, builder: "https://ci.example/builder" },
    });
    expect((await pack("inspect")).stdout).to.include(`identity: ${subject} of ${issuer}\n`);
    const inspected = JSON.parse((await pack("inspect", "--json")).stdout);
    expect(inspected).to.deep.include({ identities: [{ issuer, subject }] });
    expect(inspected.build).to.deep.include(built);
  });

  it("refuses a bundle around another statement, and leaves what is signed", async () => {
    await pack("sign", "--key", "ada.pem");
    const before = await pack("inspect");
    const statement = await world.statement({ issuedAt: "2026-01-02T00:00:00.000Z" });
    await signElsewhere(statement.toString());
    const refused = await pack("sign", "--bundle", "bundle.json");
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.include("expected a signature of what `--statement` prints");
    expect(await pack("inspect")).to.deep.equal(before);
  });

  const others: readonly (readonly [what: string, change: Parameters<TrustWorld["statement"]>[0], said: string])[] = [
    ["of other files", { subjects: new Map([["pack.yaml", sha256Hex("x")]]) }, "file_unlisted"],
    ["under another name", { name: "opened" }, "expected a signature of what `--statement` prints"],
    [
      "with another end",
      { expiresAt: "2099-01-01T00:00:00.000Z" },
      "expected a signature of what `--statement` prints",
    ],
    ["about a plugin", { kind: "plugin" }, "kind_mismatch"],
  ];
  for (const [what, change, said] of others) {
    it(`refuses a statement ${what}`, async () => {
      await signElsewhere((await world.statement(change)).toString());
      const refused = await pack("sign", "--bundle", "bundle.json");
      expect(refused).to.include({ code: 1, stdout: "" });
      expect(refused.stderr).to.include(said);
      expect((await pack("inspect")).stdout).to.include("unsigned");
    });
  }

  it("refuses what is no bundle", async () => {
    const said = "trust.yaml`: expected a Sigstore bundle, got something else";
    expect((await pack("sign", "--bundle", "trust.yaml")).stderr).to.include(said);
    expect((await pack("sign", "--bundle", "no.json")).stderr).to.include("no such file");
  });
});
