import { createPublicKey } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { configDigest } from "../../../core/config/digest.ts";
import { loadConfig } from "../../../core/config/load.ts";
import { loadTrustFile } from "../../../core/config/trust-file.ts";
import { SigstoreWorld } from "../../support/sigstore/world.ts";
import { makeSigner, trustEntry } from "../../support/trust-world.ts";

const [ada, ben] = [makeSigner("ed25519"), makeSigner("p256")];
const pem = createPublicKey(ada.key).export({ format: "pem", type: "spki" });

describe("loadTrustFile(path)", () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-trust-"));
    await mkdir(join(folder, "trust", "keys"), { recursive: true });
    await writeFile(join(folder, "trust", "keys", "ada.pem"), pem);
  });

  afterEach(() => rm(folder, { recursive: true }));

  it("reads keys as text and from files beside it, and names every file it read", async () => {
    const path = await write(
      "all_of: [{ name: ada, key_file: keys/ada.pem, not_after: 2027-01-01T00:00:00Z }]\n" +
        `any_of: { signers: [${trustEntry("ben", ben, "tighten_only: true")}] }\n` +
        `revoked: { keys: ["${ben.id}"] }\n`,
    );
    const { policy, files } = await loadTrustFile(path);
    const unbounded = { identity: null, notBefore: null, notAfter: null, tightenOnly: false };
    const notAfter = "2027-01-01T00:00:00.000Z";
    expect(policy).to.deep.equal({
      allOf: [{ ...unbounded, name: "ada", key: { keyId: ada.id, spki: ada.spki }, notAfter }],
      anyOf: {
        minimum: 1,
        signers: [{ ...unbounded, name: "ben", key: { keyId: ben.id, spki: ben.spki }, tightenOnly: true }],
      },
      trustedRoot: null,
      builder: null,
      revoked: { digests: [], keys: [ben.id] },
    });
    expect(files).to.deep.equal([path, join(folder, "trust", "keys", "ada.pem")]);
    expect(Object.isFrozen(policy.allOf[0])).to.equal(true);
  });

  it("reads the builder, which the trusted root proves", async () => {
    const builder = 'builder: { issuer: "https://id.example", subject: { prefix: "https://ci.example/team/" } }\n';
    const signers = `all_of: [${trustEntry("ada", ada)}]\n`;
    const bare = await loadTrustFile(await write(`${signers}${builder}`)).catch((error: Error) => error.message);
    expect(bare).to.include("builder: expected `trusted_root` beside it, which says who proves it, got none");
    await writeFile(join(folder, "trust", "root.json"), new SigstoreWorld().trustedRoot());
    const { policy } = await loadTrustFile(await write(`trusted_root: root.json\n${signers}${builder}`));
    const subject = { kind: "uri", prefix: "https://ci.example/team/" };
    expect(policy.builder).to.deep.equal({ issuer: "https://id.example", subject });
  });

  it("reads identities beside keys, and the trusted root that proves them", async () => {
    const sigstore = new SigstoreWorld();
    await writeFile(join(folder, "trust", "root.json"), sigstore.trustedRoot());
    const identity = (subject: string): string => `identity: { issuer: "https://id.example", subject: { ${subject} } }`;
    const path = await write(
      "trusted_root: root.json\n" +
        `all_of: [{ name: ada, key: "${ada.spki}", ${identity('equal: "ada@example.com"')} }]\n` +
        `any_of: { signers: [{ name: ci, ${identity('prefix: "https://ci.example/team/"')} }] }\n`,
    );
    const { policy, files } = await loadTrustFile(path);
    expect(policy.trustedRoot).to.deep.equal(JSON.parse(sigstore.trustedRoot()));
    expect(files).to.deep.equal([path, join(folder, "trust", "root.json")]);
    const issuer = "https://id.example";
    const told = [...policy.allOf, ...(policy.anyOf?.signers ?? [])].map(({ key, identity: known }) => [
      key?.keyId,
      known,
    ]);
    expect(told).to.deep.equal([
      [ada.id, { issuer, subject: { kind: "email", equal: "ada@example.com" } }],
      [undefined, { issuer, subject: { kind: "uri", prefix: "https://ci.example/team/" } }],
    ]);
  });

  it("is part of the configuration's digest by what it says, not by where it lies", async () => {
    const digestWith = async (trust: string, extensions: string): Promise<string> => {
      await write(trust);
      await writeFile(join(folder, "gateway.yaml"), `data_dir: /data\n${extensions}`);
      return configDigest(await loadConfig(join(folder, "gateway.yaml"), {}));
    };
    const named = "extensions: { trust_policy: trust/trust.yaml }\n";
    const [one, other] = [new SigstoreWorld(), new SigstoreWorld()];
    await writeFile(join(folder, "trust", "one.json"), one.trustedRoot());
    await writeFile(join(folder, "trust", "other.json"), other.trustedRoot());
    const known = (root: string, subject: string): string =>
      `trusted_root: ${root}\nall_of: [{ name: ada, identity: { issuer: a, subject: { equal: "${subject}" } } }]\n`;
    const digests = [
      await digestWith(`all_of: [${trustEntry("ada", ada)}]\n`, ""),
      await digestWith(`all_of: [${trustEntry("ada", ada)}]\n`, named),
      await digestWith(`all_of: [${trustEntry("ada", ada)}]\n`, named.replace("{", "{ strict: true,")),
      await digestWith(`all_of: [${trustEntry("ada", ben)}]\n`, named),
      await digestWith(`any_of: { signers: [${trustEntry("ada", ada)}] }\n`, named),
      await digestWith(`all_of: [${trustEntry("ada", ada)}]\nrevoked: { keys: ["${ada.id}"] }\n`, named),
      await digestWith(known("one.json", "a:a"), named),
      await digestWith(known("one.json", "a:b"), named),
      await digestWith(known("other.json", "a:a"), named),
    ];
    expect(new Set(digests).size).to.equal(digests.length);
    expect(await digestWith("all_of: [{ name: ada, key_file: keys/ada.pem }]\n", named)).to.equal(digests[1]);
  });

  async function write(text: string): Promise<string> {
    const path = join(folder, "trust", "trust.yaml");
    await writeFile(path, text);
    return path;
  }
});
