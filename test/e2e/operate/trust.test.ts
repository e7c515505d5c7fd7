import { generateKeyPairSync } from "node:crypto";
import { readFile, rm, symlink } from "node:fs/promises";
import { expect } from "chai";
import { contentDigest, sha256Hex } from "../../../core/action/canonical-json.ts";
import { readExtensionFolder } from "../../../core/trust/folder.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { siteConfig } from "../../support/site.ts";
import { checkStart, startRefusal } from "../../support/start-check.ts";
import { makeSigner, recordedEvents, signBundle, TrustWorld, trustEntry } from "../../support/trust-world.ts";

const [alice, bob, mallory] = [makeSigner("ed25519"), makeSigner("p256"), makeSigner()];
const both = [alice, bob];
const signatureFile = "packs/open/pack.sigstore.json";
const rulesFile = "packs/open/rules/all.yaml";

const trust = (more = "", aliceMore = ""): string =>
  `any_of: { minimum: 2, signers: [${trustEntry("alice", alice, aliceMore)}, ${trustEntry("bob", bob)}] }\n${more}`;
const revoke = (digest: string): string => trust(`revoked: { digests: ["${digest}"] }\n`);

/** What is wrong, the check that says so, and what makes it wrong: the pack was signed by both before. */
const refusals: readonly (readonly [what: string, check: string, spoil: (world: TrustWorld) => Promise<void>])[] = [
  ["no signature", "unsigned", (world) => rm(world.path(signatureFile))],
  ["a flipped bit in the manifest", "file_altered", (world) => world.flip("packs/open/pack.yaml", 0)],
  ["a flipped bit in a rule", "file_altered", (world) => world.flip(rulesFile, 20)],
  [
    "a flipped bit in the last byte of another",
    "file_altered",
    (world) => world.flip("packs/open/rules/delete.yaml", -1),
  ],
  ["a flipped bit in a file that no policy reads", "file_altered", (world) => world.flip("packs/open/README.md", 3)],
  ["a file that was not signed", "file_unlisted", (world) => world.write("packs/open/rules/more.yaml", "rules: []\n")],
  ["a signed file that is gone", "file_missing", (world) => rm(world.path("packs/open/README.md"))],
  [
    "the signature of another folder",
    "file_missing",
    (world) => world.sign(both, { subjects: new Map([["other.yaml", sha256Hex("other")]]) }),
  ],
  ["a flipped bit in a signature", "signature_invalid", spoilSignature],
  ["a signature under the name of another key", "signature_invalid", (world) => signAs(world, alice.id)],
  [
    "a signature by a trusted key over another payload type",
    "signature_invalid",
    async (world) => {
      const line = signBundle(alice, await world.statement(), { payloadType: "text/plain" });
      const posed = line.replace("text/plain", "application/vnd.in-toto+json");
      await world.write(signatureFile, posed + signBundle(bob, await world.statement()));
    },
  ],
  [
    "another payload type, and signed so",
    "payload_type",
    async (world) =>
      world.write(signatureFile, signBundle(alice, await world.statement(), { payloadType: "application/json" })),
  ],
  ["another predicate type", "predicate_type", (world) => signText(world, "extension:v1", "extension:v2")],
  ["another type of statement", "statement_malformed", (world) => signText(world, "Statement/v1", "Statement/v0.1")],
  ["a member that nobody reads", "statement_malformed", (world) => signText(world, '"kind"', '"also":1,"kind"')],
  ["a statement with room for a second reading", "statement_malformed", (world) => signText(world, ":", ": ")],
  ["a statement about a plugin", "kind_mismatch", (world) => world.sign(both, { kind: "plugin" })],
  ["the name of another pack", "content_invalid", (world) => world.sign(both, { name: "opened" })],
  ["another version than the manifest's", "content_invalid", (world) => world.sign(both, { version: "1.0.1" })],
  ["a higher sequence than the manifest's", "content_invalid", (world) => world.sign(both, { sequence: 9 })],
  ["an expired statement", "expired", (world) => world.sign(both, { expiresAt: "2026-01-02T00:00:00.000Z" })],
  [
    "a statement from the future",
    "not_yet_issued",
    (world) => world.sign(both, { issuedAt: "2999-01-01T00:00:00.000Z" }),
  ],
  ["too few signers", "signers_missing", (world) => world.sign([alice])],
  ["one signer twice", "signers_missing", (world) => world.sign([alice, alice])],
  ["signers nobody trusts", "signers_missing", (world) => world.sign([mallory, makeSigner()])],
  [
    "one of those missing who all must sign",
    "signers_missing",
    (world) => world.write("trust.yaml", trust(`all_of: [${trustEntry("mallory", mallory)}]\n`)),
  ],
  ["an expired key", "key_expired", (world) => world.write("trust.yaml", trust("", "not_after: 2026-02-01T00:00:00Z"))],
  [
    "a key that is not valid yet",
    "key_not_yet_valid",
    (world) => world.write("trust.yaml", trust("", "not_before: 2999-01-01T00:00:00Z")),
  ],
  ["a revoked key", "key_revoked", (world) => world.write("trust.yaml", trust(`revoked: { keys: ["${bob.id}"] }\n`))],
  [
    "a revoked pack",
    "digest_revoked",
    async (world) => world.write("trust.yaml", revoke((await readExtensionFolder(world.pack, "pack")).digest)),
  ],
  [
    "a revoked file",
    "digest_revoked",
    async (world) => world.write("trust.yaml", revoke(contentDigest(await readFile(world.path(rulesFile))))),
  ],
  [
    "a revoked signature file",
    "digest_revoked",
    async (world) => world.write("trust.yaml", revoke(contentDigest(await readFile(world.path(signatureFile))))),
  ],
  [
    "a revoked statement",
    "digest_revoked",
    async (world) => world.write("trust.yaml", revoke(contentDigest(await world.statement()))),
  ],
  ["signers of two statements", "statement_differs", signApart],
  ["an empty signature file", "bundle_malformed", (world) => world.write(signatureFile, "")],
  ["a duplicate key in the bundle", "bundle_malformed", (world) => editBundle(world, "{", '{"mediaType":"x",')],
  ["an unknown member in the bundle", "bundle_malformed", (world) => editBundle(world, "{", '{"also":1,')],
  ["another version of the bundle", "bundle_malformed", (world) => editBundle(world, "bundle.v0.3", "bundle.v0.4")],
  ["seventeen signatures", "bundle_malformed", (world) => world.sign(Array.from({ length: 17 }, () => alice))],
  [
    "a signature file beyond a megabyte",
    "folder_invalid",
    (world) => world.write(signatureFile, Buffer.alloc(1_048_577, " ")),
  ],
  [
    "a symbolic link",
    "folder_invalid",
    async (world) => {
      await world.write("outside.md", await readFile(world.path("packs/open/README.md")));
      await rm(world.path("packs/open/README.md"));
      await symlink(world.path("outside.md"), world.path("packs/open/README.md"));
    },
  ],
];

describe("a strict gateway", () => {
  let world: TrustWorld;

  beforeEach(async () => {
    world = await TrustWorld.make();
    await world.write("trust.yaml", trust());
    await world.sign(both);
  });

  afterEach(() => world.remove());

  it("loads a pack that enough signers vouch for, and records them", async () => {
    await (await start(world)).stop();
    const { digest } = await readExtensionFolder(world.pack, "pack");
    const bundleDigest = contentDigest(await readFile(world.path(signatureFile)));
    expect(await recordedEvents(world.path("data"), "extension")).to.deep.equal([
      {
        event: "loaded",
        kind: "pack",
        name: "open",
        version: "1.0.0",
        digest,
        signers: ["alice", "bob"],
        bundle_digest: bundleDigest,
        trust: "trusted",
      },
    ]);
  });

  describe("refuses to start, says which check failed, and records it [S34] [R1.1-6]:", () => {
    for (const [what, check, spoil] of refusals) {
      it(what, async () => {
        await spoil(world);
        expect(await startRefusal(world.folder, configOf(true))).to.match(saying(check));
        const [event, ...others] = await recordedEvents(world.path("data"), "extension");
        expect(event).to.include({ event: "refused", kind: "pack", check });
        expect(others).to.deep.equal([]);
      });
    }
  });

  describe("that loaded a pack before", () => {
    beforeEach(() => checkStart(world.folder, configOf(true)));

    it("starts again with the same, and with a later one", async () => {
      await checkStart(world.folder, configOf(true));
      await world.setSequence(4);
      await world.sign(both);
      await checkStart(world.folder, configOf(true));
    });

    it("refuses an older one for good [S34]", async () => {
      await world.setSequence(2);
      await world.sign(both);
      expect(await refusalOf(world)).to.match(saying("sequence_lower"));
    });

    it("refuses other files under the same sequence [S34]", async () => {
      await world.edit(rulesFile, "message: allowed", "message: yes");
      await world.sign(both);
      expect(await startRefusal(world.folder, configOf(true))).to.match(saying("sequence_reused"));
    });
  });

  it("tells of every pack that it refuses, at once", async () => {
    await rm(world.path(signatureFile));
    const config = configOf(true).replace("packs: [", "packs: [{ path: packs/nowhere }, ");
    const said = await refusalOf(world, config);
    expect(said).to.match(/invalid extension: `[^`]*nowhere` cannot be read: no such folder/);
    expect(said).to.match(/extension refused: `[^`]*packs\/open`: unsigned: /);
    const events = await recordedEvents(world.path("data"), "extension");
    expect(events.map(({ check }) => check)).to.deep.equal(["folder_invalid", "unsigned"]);
  });

  describe("refuses a trust policy:", () => {
    const entry = trustEntry("alice", alice);
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({ format: "der", type: "spki" });
    const policies: readonly (readonly [what: string, text: string, fault: string])[] = [
      ["empty", "", "expected a mapping, got nothing"],
      ["nobody in it", "any_of: { minimum: 1 }\n", "expected at least one signer, got none"],
      ["an empty list", "all_of: []\n", "all_of: expected at least one entry, got an empty list"],
      ["an unknown key", `all_off: [${entry}]\n`, "all_off: unknown key, did you mean `all_of`?"],
      ["an alias", `all_of: [&a ${entry}]\nany_of: { signers: [*a] }\n`, "expected a plain value, got an alias"],
      ["a key given twice", `all_of: [${entry}]\nall_of: [${entry}]\n`, "expected each key once, got `all_of` again"],
      [
        "more signatures than signers",
        `any_of: { minimum: 2, signers: [${entry}] }\n`,
        "expected at most the 1 signers",
      ],
      ["one key under two names", `all_of: [${entry}, ${trustEntry("twin", alice)}]\n`, "expected a key of its own"],
      ["one name for two keys", `all_of: [${entry}, ${trustEntry("alice", bob)}]\n`, "expected a name of its own"],
      ["an RSA key", `all_of: [{ name: a, key: "${rsa.toString("base64")}" }]\n`, "expected an Ed25519 or ECDSA P-256"],
      ["no key", "all_of: [{ name: a }]\n", "expected `key`, `key_file` or `identity`, got none of them"],
      ["a private key", "all_of: [{ name: a, key_file: secret.pem }]\n", "all_of[0].key_file: expected an Ed25519"],
      ["a key file that is not there", "all_of: [{ name: a, key_file: no.pem }]\n", "expected a readable file"],
      [
        "a window that ends before it begins",
        `all_of: [${trustEntry("alice", alice, "not_before: 2027-01-01T00:00:00Z, not_after: 2026-01-01T00:00:00Z")}]\n`,
        "expected a time after `not_before`",
      ],
    ];
    for (const [what, text, fault] of policies) {
      it(what, async () => {
        await world.write("trust.yaml", text);
        await world.write("secret.pem", alice.pem);
        const said = await startRefusal(world.folder, configOf(true));
        expect(said).to.include("invalid configuration").and.to.include(fault);
        expect(said).not.to.include(alice.pem.split("\n")[1]);
      });
    }

    it("not there", async () => {
      await rm(world.path("trust.yaml"));
      expect(await refusalOf(world)).to.include("expected a readable file, got no such file");
    });

    it("not named", async () => {
      const config = configOf(true).replace("trust_policy: trust.yaml", "");
      expect(await startRefusal(world.folder, config)).to.include(
        "extensions.trust_policy: expected a trust policy, got none, because `extensions.strict` is `true`",
      );
    });
  });
});

describe("a gateway that is not strict", () => {
  let world: TrustWorld;

  beforeEach(async () => {
    world = await TrustWorld.make();
    await world.write("trust.yaml", trust());
  });

  afterEach(() => world.remove());

  it("loads what is not trusted, says so in the log, and marks it in evidence", async () => {
    await world.sign([alice]);
    const said = await logOf(configOf(false));
    expect(said).to.include("extension_untrusted").and.to.include("signers_missing");
    await rm(world.path(signatureFile));
    expect(await logOf(configOf(false))).to.include('"check":"unsigned"');
    await logOf(siteConfig({}));
    const events = await recordedEvents(world.path("data"), "extension");
    expect(events.map(({ trust, signers, check }) => [trust, signers, check])).to.deep.equal([
      ["untrusted", [], "signers_missing"],
      ["unsigned", [], "unsigned"],
      ["unsigned", [], undefined],
    ]);
  });

  it("learns no sequence from what it does not trust", async () => {
    await world.setSequence(9);
    await world.sign([mallory]);
    await logOf(configOf(false));
    await world.setSequence(3);
    await world.sign(both);
    await (await start(world)).stop();
  });

  async function logOf(config: string): Promise<string> {
    const gateway = await startGateway({ folder: world.folder, config });
    await gateway.stop();
    return gateway.stderr();
  }
});

function configOf(strict: boolean): string {
  return siteConfig({ more: `extensions: { strict: ${strict}, trust_policy: trust.yaml }` });
}

function start(world: TrustWorld): Promise<RunningGateway> {
  return startGateway({ folder: world.folder, config: configOf(true) });
}

/** What a gateway that does not start says. */
async function refusalOf(world: TrustWorld, config = configOf(true)): Promise<string> {
  try {
    const gateway = await startGateway({ folder: world.folder, config });
    await gateway.stop();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("expected the gateway to refuse to start");
}

function saying(check: string): RegExp {
  if (check === "folder_invalid") return /gateway: invalid extension: /;
  if (check === "content_invalid") return /gateway: invalid policy pack: .*\n.*as it was signed/;
  return new RegExp(`gateway: extension refused: \`[^\`]*packs/open\`: ${check}: `);
}

async function spoilSignature(world: TrustWorld): Promise<void> {
  const text = await readFile(world.path(signatureFile), "utf8");
  // The eleventh character of the first signature: six bits, all of which count.
  const at = text.indexOf('"sig":"') + 17;
  await world.write(signatureFile, `${text.slice(0, at)}${text[at] === "A" ? "B" : "A"}${text.slice(at + 1)}`);
}

async function signAs(world: TrustWorld, keyId: string): Promise<void> {
  const payload = await world.statement();
  await world.write(signatureFile, signBundle(mallory, payload, { keyId }) + signBundle(bob, payload));
}

/** Signs by both a statement whose text is another. */
async function signText(world: TrustWorld, from: string, to: string): Promise<void> {
  const payload = Buffer.from((await world.statement()).toString("utf8").replace(from, to));
  await world.write(signatureFile, both.map((signer) => signBundle(signer, payload)).join(""));
}

async function signApart(world: TrustWorld): Promise<void> {
  const later = await world.statement({ issuedAt: "2026-01-02T00:00:00.000Z" });
  await world.write(signatureFile, signBundle(alice, await world.statement()) + signBundle(bob, later));
}

async function editBundle(world: TrustWorld, from: string, to: string): Promise<void> {
  await world.edit(signatureFile, from, to);
}
