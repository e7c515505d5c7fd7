import { readdir, readFile, rm, stat } from "node:fs/promises";
import { expect } from "chai";
import { CommandHost } from "../../support/command-host.ts";
import { startGateway } from "../../support/gateway.ts";
import { connectClient } from "../../support/mcp-client.ts";
import { Log } from "../../support/sigstore/log.ts";
import { identityToken, SigstoreService } from "../../support/sigstore/service.ts";
import { makeRoleKey, TufRepository } from "../../support/sigstore/tuf-repository.ts";
import { issuer, SigstoreWorld, subject } from "../../support/sigstore/world.ts";
import { readCalls, siteConfig, siteKey } from "../../support/site.ts";
import { startRefusal } from "../../support/start-check.ts";
import { TrustWorld } from "../../support/trust-world.ts";
import type { Finished } from "../../unit/cli/run.ts";

const sigstore = new SigstoreWorld();
const trustedRoot = sigstore.trustedRoot({ logs: [sigstore.log] });
const strict = "extensions: { strict: true, trust_policy: trust.yaml }";
const past = "2020-01-01T00:00:00Z";

describe("trust update", () => {
  const host = new CommandHost();
  let world: TrustWorld;
  let repository: TufRepository;

  beforeEach(async () => {
    [world, repository] = await Promise.all([TrustWorld.make(), TufRepository.start()]);
    await world.write("first.json", repository.root());
    const identity = `{ issuer: "${issuer}", subject: { equal: "${subject}" } }`;
    await world.write("trust.yaml", `trusted_root: root.json\nall_of: [{ name: release, identity: ${identity} }]\n`);
  });

  afterEach(() => Promise.all([repository.stop(), world.remove()]));

  after(() => host.stop());

  const run = (...words: readonly string[]): Promise<Finished> => host.run(words, {}, world.folder);
  const update = (...words: readonly string[]): Promise<Finished> =>
    run("trust", "update", "root.json", "--url", repository.url, ...words);

  /** The first update, which must be done. */
  async function pin(text = trustedRoot): Promise<void> {
    repository.publish(text, { version: 2 });
    expect(await update("--root", "first.json")).to.include({ code: 0, stderr: "" });
  }

  /** The pinned file, what is beside it, and every name in the folder. */
  async function pinned(): Promise<readonly string[]> {
    const names = (await readdir(world.folder)).toSorted();
    const texts = names
      .filter((name) => name.startsWith("root.json"))
      .map((name) => readFile(world.path(name), "utf8"));
    return [...names, ...(await Promise.all(texts))];
  }

  async function expectRefused(message: string, words: readonly string[] = [], code = 1): Promise<void> {
    const before = await pinned();
    expect(await update(...words)).to.deep.equal({ code, stdout: "", stderr: `gateway: ${message}\n` });
    expect(await pinned(), "nothing is written").to.deep.equal(before);
  }

  it("pins a root under which a strict gateway loads a keyless pack, and no other one [S89]", async () => {
    const service = await SigstoreService.start(sigstore);
    const services = ["--fulcio", service.url, "--rekor", service.url, "--tsa", service.url];
    const words = ["pack", "sign", world.pack, "--keyless", ...services];
    expect((await host.run(words, { SIGSTORE_ID_TOKEN: identityToken }, world.folder)).stderr).to.equal("");
    await service.stop();

    const foreign = new SigstoreWorld();
    await pin(foreign.trustedRoot({ logs: [foreign.log] }));
    const config = siteConfig({ localLog: world.path("calls.log"), more: strict });
    expect(await startRefusal(world.folder, config)).to.include("timestamp_invalid: expected");

    repository.publish(trustedRoot, { version: 3 });
    expect((await update()).code).to.equal(0);
    expect(await readFile(world.path("root.json"), "utf8"), "byte for byte").to.equal(trustedRoot);
    await repository.stop();
    const gateway = await startGateway({ folder: world.folder, config });
    try {
      const client = await connectClient("v2 modern", { url: `${gateway.url}/mcp`, headers: { "x-api-key": siteKey } });
      await client.callTool("list_notes");
      await client.close();
      expect((await readCalls(world.path("calls.log"))).map(({ tool }) => tool)).to.deep.equal(["list_notes"]);
    } finally {
      await gateway.stop();
    }
  });

  it("prints what changed, and asks its own repository again", async () => {
    await pin();
    for (const name of ["root.json", "root.json.tuf.json"])
      expect((await stat(world.path(name))).mode & 0o777, name).to.equal(0o644);
    const same = await run("trust", "update", "root.json");
    expect(same).to.include({ code: 0, stderr: "" });
    expect(same.stdout).to.match(/^root\.json: unchanged, sha256:[0-9a-f]{64}, TUF root 1, time stamp 2 until 2049-/);
    expect(same.stdout.split("\n")).to.have.length(2);

    const log = new Log("other.example");
    repository.publish(sigstore.trustedRoot({ logs: [log] }), { version: 3 });
    const newer = await update("--check");
    expect(newer.code, "there is a newer one").to.equal(1);
    expect(newer.stdout).to.match(/^root\.json: a newer trusted root is there, /);
    expect(await readFile(world.path("root.json"), "utf8")).to.equal(trustedRoot);
    const { stdout, code } = await update();
    expect(code).to.equal(0);
    const [first, ...changes] = stdout.trimEnd().split("\n");
    expect(first).to.match(/^root\.json: updated, /);
    expect(changes.map((line) => line.replace(/sha256:.*/, "…"))).to.deep.equal([
      '- transparency log "https://log.example", from 2020-01-01T00:00:00.000Z, …',
      '+ transparency log "https://other.example", from 2020-01-01T00:00:00.000Z, …',
    ]);
    expect((await update("--check")).code, "the newest").to.equal(0);
  });

  it("follows the keys of the repository from root to root", async () => {
    await pin();
    const { root } = repository.keys;
    repository.keys = {
      root: makeRoleKey(),
      timestamp: makeRoleKey(),
      snapshot: makeRoleKey(),
      targets: makeRoleKey(),
    };
    repository.publishRoot({ signers: [root] });
    repository.publish(trustedRoot, { version: 3 });
    expect((await update("--json")).stdout).to.include('"root":{"version":2,');
    expect(repository.asked).to.include("2.root.json");
    const count = repository.asked.length;
    expect((await update()).code).to.equal(0);
    expect(repository.asked.slice(count), "the last root is the next start").to.not.include("2.root.json");
  });

  it("begins with the root of Sigstore's public repository, which no other one has signed for", async () => {
    repository.publish(trustedRoot);
    const { code, stdout, stderr } = await update();
    expect({ code, stdout }).to.deep.equal({ code: 1, stdout: "" });
    expect(stderr).to.match(
      /^gateway: trusted root refused: metadata_(?:expired|unsigned): "(?:root|timestamp)\.json": /,
    );
    expect(await readdir(world.folder)).to.not.include("root.json");
  });

  const clock = "check the clock of this machine, or ask who keeps the repository to renew it";
  const expired = "expected metadata that is valid still, got some that has expired";
  const unsigned = "expected the signatures that the root asks for, got fewer";
  const keys = "check that `--url` and `--root` are of the same repository";
  const mirror = "try again later, or another mirror with `--url`";
  const noRepository = "check that `--url` is a TUF repository";
  const refusals: readonly (readonly [what: string, message: string, change: () => void])[] = [
    ...(["timestamp", "snapshot", "targets"] as const).flatMap((role) => [
      [
        `${role} that has expired`,
        `metadata_expired: "${role}.json": ${expired}; ${clock}`,
        () => repository.publish(trustedRoot, { version: 3, expires: { [role]: past } }),
      ] as const,
      [
        `${role} of another key`,
        `metadata_unsigned: "${role === "timestamp" ? "" : "3."}${role}.json": ${unsigned}; ${keys}`,
        () => repository.publish(trustedRoot, { version: 3, signer: { [role]: makeRoleKey() } }),
      ] as const,
    ]),
    [
      "a root that has expired",
      `metadata_expired: "root.json": ${expired}; ${clock}`,
      () => repository.publishRoot({ expires: past }),
    ],
    [
      "a root that the one before has not signed",
      `metadata_unsigned: "2.root.json": ${unsigned}; ${keys}`,
      () => {
        repository.keys = { ...repository.keys, root: makeRoleKey() };
        repository.publishRoot();
      },
    ],
    [
      "an older version than the one seen",
      'metadata_rollback: "timestamp.json": expected no older version; who answers shows an older state than before; try another mirror with `--url`',
      () => repository.publish(trustedRoot, { version: 1 }),
    ],
    [
      "a snapshot of another version",
      `metadata_mismatch: "3.snapshot.json": expected the version, length and digest that the metadata above it gives, got others; ${mirror}`,
      () => {
        repository.publish(trustedRoot, { version: 3 });
        repository.files.set("3.snapshot.json", repository.files.get("2.snapshot.json") ?? 404);
      },
    ],
    [
      "a target of other bytes",
      `target_mismatch: "trusted_root.json": expected the length and the digest that the metadata gives, got others; ${mirror}`,
      () =>
        repository.publish(`${trustedRoot} `, { version: 3, served: Buffer.from(sigstore.trustedRoot({ logs: [] })) }),
    ],
    [
      "a time stamp without end",
      `too_large: "timestamp.json": expected at most 16384 bytes, got more; ${noRepository}`,
      () => repository.files.set("timestamp.json", "endless"),
    ],
    [
      "a root without end",
      `too_large: "2.root.json": expected at most 512000 bytes, got more; ${noRepository}`,
      () => repository.files.set("2.root.json", "endless"),
    ],
    [
      "a target that is signed, and too large for a gateway",
      `too_large: "trusted_root.json": expected at most 1048576 bytes, got 1048577; ${noRepository}`,
      () => repository.publish(" ".repeat(1_048_577), { version: 3 }),
    ],
    [
      "a target that is no trusted root",
      'target_malformed: "trusted_root.json": expected a Sigstore TrustedRoot in JSON, got something else; ask who keeps the repository',
      () => repository.publish("{}", { version: 3 }),
    ],
    [
      "no time stamp",
      `file_missing: "timestamp.json": expected a file of a TUF repository, got HTTP 404; ${noRepository} with a \`trusted_root.json\``,
      () => repository.files.delete("timestamp.json"),
    ],
    [
      "a redirect",
      `file_missing: "timestamp.json": expected a file of a TUF repository, got HTTP 302; ${noRepository} with a \`trusted_root.json\``,
      () => repository.files.set("timestamp.json", 302),
    ],
    [
      "no trusted root among the targets",
      `file_missing: "trusted_root.json": expected a target of that name, got none; ${noRepository} with a \`trusted_root.json\``,
      () => repository.publish(trustedRoot, { version: 3, target: "other.json" }),
    ],
    [
      "a page in place of metadata",
      `metadata_malformed: "timestamp.json": expected signed TUF metadata, got something else; ${noRepository}`,
      () => repository.files.set("timestamp.json", Buffer.from("<!doctype html>")),
    ],
  ];
  for (const [what, message, change] of refusals) {
    it(`refuses ${what}, and leaves the pinned root [S89]`, async () => {
      await pin();
      change();
      await expectRefused(`trusted root refused: ${message}`);
    });
  }

  it("refuses another repository, and what is no trusted root, in the place of the pinned one", async () => {
    await pin();
    const other = await TufRepository.start();
    await world.write("other.json", other.root());
    await other.stop();
    const { stderr, code } = await update("--root", "other.json");
    expect(code).to.equal(1);
    expect(stderr).to.match(/^gateway: trusted root refused: root_other: "root\.json": expected the root sha256:/);
    await world.write("root.json", "mine\n");
    await expectRefused("trusted root refused: `root.json`: expected a Sigstore TrustedRoot to replace, or nothing");
    await rm(world.path("root.json"));
    await rm(world.path("root.json.tuf.json"));
    const step = "give the `root.json` of this repository with `--root`";
    const unusable = `root_unusable: "root.json": expected root metadata of TUF, signed by its own keys; ${step}`;
    await expectRefused(`trusted root refused: ${unusable}`, ["--root", "trust.yaml"]);
  });

  it("names a repository that does not answer, and ends with 3", async () => {
    await pin();
    repository.files.set("timestamp.json", 503);
    const { host: name } = new URL(repository.url);
    await expectRefused(`TUF repository unreachable: \`${name}\`: HTTP 503`, [], 3);
    await repository.stop();
    await expectRefused(`TUF repository unreachable: \`${name}\`: the connection failed (ECONNREFUSED)`, [], 3);
  });
});
