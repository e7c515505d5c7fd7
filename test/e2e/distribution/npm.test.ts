import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { CommandHost } from "../../support/command-host.ts";
import { fileDigests } from "../../support/file-digest.ts";
import { type HandEntry, handTarball, integrityOf, NpmRegistry, npmPack } from "../../support/npm-registry.ts";
import { makeSigner, TrustWorld, trustEntry } from "../../support/trust-world.ts";
import type { Finished } from "../../unit/cli/run.ts";

const text = (name: string, content = "x"): HandEntry => ({ name: `package/${name}`, bytes: Buffer.from(content) });

describe("packs in npm tarballs", () => {
  const host = new CommandHost();
  const signer = makeSigner();
  let world: TrustWorld;
  let registry: NpmRegistry;
  /** The signed pack, as npm packs it. */
  let tarball: Buffer;

  before(async () => {
    [world, registry] = await Promise.all([TrustWorld.make(), NpmRegistry.start()]);
    await world.write("packs/open/package.json", '{ "name": "@acme/open", "version": "1.0.0" }\n');
    await world.write("trust.yaml", `all_of: [${trustEntry("ops", signer)}]\n`);
    tarball = await release(3);
  });

  beforeEach(() => world.write("site/kept.txt", "kept\n"));

  after(() => Promise.all([host.stop(), registry.stop(), world.remove()]));

  async function release(sequence: number): Promise<Buffer> {
    await world.setSequence(sequence);
    await world.sign([signer]);
    return npmPack(world.pack);
  }

  const target = (name = "open"): string => world.path(`site/${name}`);
  const pull = (
    reference: string,
    folder: string,
    words: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ): Promise<Finished> =>
    host.run(
      ["pack", "pull", reference, folder, "--trust", "trust.yaml", ...words],
      { DOCKER_CONFIG: world.path("docker"), ...env },
      world.folder,
    );

  /** Runs a pull that must be refused with exactly this message, exit code 1 unless told, and nothing written. */
  async function expectRefused(
    reference: string,
    message: string,
    words: readonly string[] = [],
    code = 1,
  ): Promise<void> {
    const before = await fileDigests(world.path("site"));
    const folder = words.includes("--update") ? target() : target("other");
    expect(await pull(reference, folder, words)).to.deep.equal({ code, stdout: "", stderr: `gateway: ${message}\n` });
    expect(await fileDigests(world.path("site")), "nothing is written").to.deep.equal(before);
  }

  it("come back byte for byte, locked by digest, and never an older one [S89]", async () => {
    const reference = registry.serve("open", tarball);
    const { code, stdout, stderr } = await pull(reference, target(), ["--json"]);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
    const pulled = JSON.parse(stdout);
    expect(pulled).to.include({ name: "open", sequence: 3, artifact: contentDigest(tarball) });
    expect(await fileDigests(target())).to.deep.equal(await fileDigests(world.pack));
    const lock = JSON.parse(await readFile(`${target()}.lock.json`, "utf8"));
    expect(lock).to.include({ source: reference, artifact: contentDigest(tarball), digest: pulled.digest });
    expect((await pull(reference, target())).code, "the same again").to.equal(0);

    const newer = registry.serve("newer", await release(4));
    const moved = await pull(newer, target());
    expect(moved.code).to.equal(1);
    expect(moved.stderr).to.include(
      `artifact refused: expected the locked ${lock.artifact} of open 1.0.0, got sha256:`,
    );
    expect((await pull(newer, target(), ["--update"])).code).to.equal(0);
    const lower = "sequence_lower: expected no sequence below one that was loaded before (got 3 after 4)";
    await expectRefused(reference, `extension refused: \`${reference}\`: ${lower}`, ["--update"]);
    await world.setSequence(3);
    await world.sign([signer]);
  });

  it("are refused where the tarball or its integrity is another [S89]", async () => {
    const altered = Buffer.from(tarball);
    altered.writeUInt8(altered.readUInt8(altered.length - 9) ^ 1, altered.length - 9);
    const expected = (got: Buffer): string =>
      `artifact refused: the tarball: expected the integrity ${integrityOf(tarball)}, got ${integrityOf(got)}`;
    await expectRefused(registry.serve("altered", altered, integrityOf(tarball)), expected(altered));
    const other = gzipSync(gunzipSync(tarball), { level: 1 });
    await expectRefused(registry.serve("other", other, integrityOf(tarball)), expected(other));
  });

  it("are refused where a file was changed after it was signed, or by a signer who is not trusted", async () => {
    const files = (await readdir(world.pack, { recursive: true, withFileTypes: true })).filter((each) => each.isFile());
    const entries = await Promise.all(
      files.map(async ({ parentPath, name }) => {
        const path = join(parentPath, name);
        return { name: `package/${path.slice(world.pack.length + 1)}`, bytes: await readFile(path) };
      }),
    );
    const all = registry.serve("all", handTarball(entries));
    expect((await pull(all, target("all"))).code, "the same files by hand").to.equal(0);
    const change = (bytes: Buffer): Buffer =>
      Buffer.from(bytes.toString().replace("decision: block", "decision: allow"));
    const altered = entries.map(({ name, bytes }) => ({ name, bytes: change(bytes) }));
    const reference = registry.serve("changed", handTarball(altered));
    const fault = "file_altered: expected every file as it was signed (`rules/delete.yaml`)";
    await expectRefused(reference, `extension refused: \`${reference}\`: ${fault}`);
    const unlisted = registry.serve("unlisted", handTarball([...entries, text("data/more.json", "{}")]));
    const more = "file_unlisted: expected every file to be signed (`data/more.json`)";
    await expectRefused(unlisted, `extension refused: \`${unlisted}\`: ${more}`);
    await world.sign([makeSigner()]);
    const foreign = registry.serve("foreign", await npmPack(world.pack));
    await world.sign([signer]);
    const few =
      "signers_missing: expected signatures of the signers that the trust policy asks for (`ops` did not sign)";
    await expectRefused(foreign, `extension refused: \`${foreign}\`: ${few}`);
  });

  it("are plugins as well, without their author's working folders", async () => {
    await world.write("scan/plugin.wasm", "wasm");
    const digest = contentDigest(Buffer.from("wasm"));
    const manifest =
      "metadata: { name: scan, version: 1.0.0, title: Scan }\nabi: gateway-plugin/1\nmodule: plugin.wasm";
    await world.write(
      "scan/plugin.yaml",
      `apiVersion: gateway/v1\nkind: Plugin\n${manifest}\ndigest: ${digest}\nsequence: 1\n`,
    );
    await world.write("scan/package.json", '{ "name": "scan", "version": "1.0.0" }\n');
    // Beyond 100 characters a name has two fields in the header.
    const long = `${"a".repeat(60)}/${"b".repeat(60)}.md`;
    await world.write(`scan/${long}`, "long\n");
    await world.write("key.pem", signer.pem);
    const sign = await host.run(["plugin", "sign", "scan", "--key", "key.pem"], {}, world.folder);
    expect(sign).to.include({ code: 0, stderr: "" });
    await world.write("scan/build/plugin.wasm.map", "{}");
    const packed = await npmPack(world.path("scan"));
    expect(gunzipSync(packed).includes("package/build/plugin.wasm.map"), "npm packs it").to.equal(true);
    const words = ["plugin", "pull", registry.serve("scan", packed), target("scan"), "--trust", "trust.yaml"];
    expect(await host.run(words, {}, world.folder)).to.include({ code: 0, stderr: "" });
    const names = [long.slice(0, 60), "package.json", "plugin.sigstore.json", "plugin.wasm", "plugin.yaml"];
    expect((await readdir(target("scan"))).toSorted()).to.deep.equal(names);
    expect(await readFile(join(target("scan"), long), "utf8")).to.equal("long\n");
    const asPack = registry.serve("scan", packed);
    await expectRefused(asPack, "artifact refused: expected a pack with `pack.yaml`, got none");
  });

  const plain = "expected a relative path of plain file names, got";
  const file = (name: string, got: string): string => `${JSON.stringify(name)}: expected a plain file, got ${got}`;
  const large = Buffer.alloc(1_048_577);
  const tricks: readonly (readonly [what: string, fault: string, tar: () => Buffer])[] = [
    ["a way out", `${plain} "../kept.txt"`, () => handTarball([text("../kept.txt")])],
    ["an absolute path", `${plain} "/etc/passwd"`, () => handTarball([text("/etc/passwd")])],
    [
      "a path elsewhere",
      'expected files below `package/`, got "/etc/passwd"',
      () => handTarball([{ name: "/etc/passwd" }]),
    ],
    ["a backslash", `${plain} "a\\\\b"`, () => handTarball([text("a\\b")])],
    ["what git reads", `${plain} ".git/config"`, () => handTarball([text(".git/config")])],
    [
      "two cases of a name",
      "expected each file once, got `a.yaml` and `A.yaml`",
      () => handTarball([text("a.yaml"), text("A.yaml")]),
    ],
    [
      "a file and a folder",
      "expected `a` to be a file or a folder, got both",
      () => handTarball([text("a"), text("a/b")]),
    ],
    [
      "a symbolic link",
      file("package/a", "a symbolic link"),
      () => handTarball([{ name: "package/a", type: "2", link: "/etc" }]),
    ],
    ["a hard link", file("package/a", "a hard link"), () => handTarball([{ name: "package/a", type: "1", link: "b" }])],
    ["a folder", file("package/a/", "a folder"), () => handTarball([{ name: "package/a/", type: "5" }])],
    ["a device", file("package/a", "a device"), () => handTarball([{ name: "package/a", type: "3" }])],
    [
      "an extended header, which may name another path",
      file("package/a", "another entry"),
      () => handTarball([{ name: "package/a", type: "x", bytes: Buffer.from("14 path=../a\n") }]),
    ],
    [
      "a large file",
      '"package/a.json": expected at most 1048576 bytes, got 1048577',
      () => handTarball([{ name: "package/a.json", bytes: large }]),
    ],
    [
      "too many bytes",
      "expected at most 16777216 bytes in all, got 17825792",
      () =>
        handTarball(
          ["pack.yaml", "pack.sigstore.json", ...Array.from({ length: 15 }, (_, index) => `data/${index}.json`)].map(
            (name) => ({ name: `package/${name}`, bytes: large.subarray(1) }),
          ),
        ),
    ],
    [
      "a bomb",
      "expected at most 18098176 bytes unpacked, got more",
      () => handTarball([{ name: "package/a.json", bytes: Buffer.alloc(20_000_000) }]),
    ],
    [
      "many files",
      "expected at most 256 files, got 257",
      () => handTarball(Array.from({ length: 257 }, (_, index) => text(`data/${index}.json`))),
    ],
    [
      "a size in another form",
      '"package/a": expected a size in octal digits',
      () => handTarball([{ name: "package/a", size: "\u0080\0\0\0\0\0\0\0\0\0\0\u0001" }]),
    ],
    [
      "a file that ends early",
      "expected a whole tarball, got one that ends early",
      () => handTarball([{ name: "package/a", size: "00000002000 " }], Buffer.alloc(0)),
    ],
    ["no end", "expected a whole tarball, got one that ends early", () => handTarball([text("a")], Buffer.alloc(0))],
    [
      "more after the end",
      "expected nothing after the end of the tarball, got more",
      () => handTarball([text("a")], Buffer.concat([Buffer.alloc(1_024), Buffer.from("more")])),
    ],
    [
      "another archive",
      "expected a tarball as npm packs it, got something else",
      () => gzipSync(Buffer.alloc(1_024, 1)),
    ],
    ["no archive", "expected a tarball in gzip, got none", () => Buffer.from("<!doctype html>")],
    ["no signature", "expected a pack with `pack.yaml`, got none", () => handTarball([text("a")])],
  ];
  for (const [what, fault, tar] of tricks) {
    it(`are refused with ${what}, and nothing is written [S89]`, () =>
      expectRefused(registry.serve("trick", tar()), `artifact refused: ${fault}`));
  }

  it("are asked for with a credential where one is needed, and from where the registry hands them out", async () => {
    const reference = registry.serve("open", tarball);
    const env = { GATEWAY_REGISTRY_USERNAME: "ci", GATEWAY_REGISTRY_PASSWORD: "canary" };
    const seen: (string | undefined)[] = [];
    registry.answer = ({ headers, url }, response) => {
      seen.push(`${url} ${headers.authorization === undefined ? "without" : "with"}`);
      if (url === "/elsewhere") response.end(tarball);
      else if (headers.authorization === undefined) response.writeHead(401).end();
      else response.writeHead(302, { location: "/elsewhere" }).end();
    };
    try {
      const login = `\`docker login ${new URL(reference).host}\`, or set GATEWAY_REGISTRY_USERNAME and GATEWAY_REGISTRY_PASSWORD`;
      const none = `the registry refused: \`${reference}\`: expected a credential, got none (HTTP 401); ${login}`;
      await expectRefused(reference, none);
      seen.length = 0;
      expect((await pull(reference, target("named"), [], env)).code).to.equal(0);
      const path = "/open/-/open-1.0.0.tgz";
      expect(seen).to.deep.equal([`${path} without`, `${path} with`, "/elsewhere without"]);
      registry.answer = (_, response) => response.writeHead(302, { location: "http://public.example/" }).end();
      const plainText = 'expected a redirect to https, got "http://public.example"';
      await expectRefused(reference, `the registry refused: \`${reference}\`: ${plainText}`);
      registry.answer = (_, response) => response.writeHead(503).end();
      const { host: name } = new URL(reference);
      await expectRefused(reference, `registry unreachable: \`${name}\`: HTTP 503`, [], 3);
    } finally {
      registry.answer = undefined;
    }
    const missing = `${registry.url}/none.tgz#${integrityOf(tarball)}`;
    await expectRefused(missing, `the registry refused: \`${missing}\`: it has no such artifact (HTTP 404)`);
  });

  it("need an integrity, and https but on this machine", async () => {
    const integrity = integrityOf(tarball);
    for (const reference of [
      `${registry.url}/open.tgz`,
      `${registry.url}/open.tgz#sha1-AAAA`,
      `http://npm.example/open.tgz#${integrity}`,
      `https://user:canary@npm.example/open.tgz#${integrity}`,
      `https://npm.example/a/../open.tgz#${integrity}`,
    ]) {
      const { code, stderr } = await pull(reference, target("other"));
      expect(code, reference).to.equal(2);
      expect(stderr)
        .to.match(/^error: argument 'reference' is invalid\. expected `oci:/)
        .and.not.include("canary");
    }
  });
});
