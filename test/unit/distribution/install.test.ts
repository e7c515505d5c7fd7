import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { installExtension, requireReplaceable } from "../../../core/distribution/install.ts";
import { type ExtensionLock, encodeLock, lockPath, readLock } from "../../../core/distribution/lock-file.ts";
import { assembleFolder } from "../../../core/trust/folder.ts";
import { rejection } from "../../support/ledger-world.ts";

const digest = (byte: string): string => `sha256:${byte.repeat(32)}`;
const lock: ExtensionLock = {
  kind: "pack",
  name: "open",
  version: "1.0.0",
  sequence: 3,
  source: "oci://r.example/open:1",
  artifact: digest("0a"),
  digest: digest("0b"),
};
const files = new Map([
  ["pack.yaml", Buffer.from("a")],
  ["rules/a.yaml", Buffer.from("b")],
  ["pack.sigstore.json", Buffer.from("c")],
]);

describe("installExtension(folder, extension, all, lock)", () => {
  let root: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "install-"));
  });

  afterEach(() => rm(root, { recursive: true }));

  const extension = assembleFolder("open", "pack", files);

  it("replaces the whole folder, with its lock, and leaves nothing beside them", async () => {
    const place = join(root, "packs/open");
    await mkdir(join(place, "rules"), { recursive: true });
    await writeFile(join(place, "rules/old.yaml"), "old");
    await installExtension(place, extension, files, lock);
    expect((await readdir(place, { recursive: true })).toSorted()).to.deep.equal([
      "pack.sigstore.json",
      "pack.yaml",
      "rules",
      "rules/a.yaml",
    ]);
    expect(await readdir(join(root, "packs"))).to.have.members(["open", "open.lock.json"]);
    expect(await readLock(place)).to.deep.equal(lock);
  });

  it("changes nothing where what was written is not what was verified, or nothing can be written", async () => {
    const place = join(root, "open");
    const other = { kind: "pack", digest: digest("0c") } as const;
    const error = await rejection(installExtension(place, other, files, lock));
    expect(error).to.include({ code: "EXTENSION_INVALID" });
    expect(error.message).to.include(`expected the files as written, ${other.digest}`);
    expect(await readdir(root)).to.deep.equal([]);
    await writeFile(join(root, "file"), "");
    const below = await rejection(installExtension(join(root, "file/open"), extension, files, lock));
    expect(below.message).to.include("cannot be written: ");
    expect(await readdir(root)).to.deep.equal(["file"]);
  });

  it("replaces neither a link nor a file nor a folder without a lock", async () => {
    await mkdir(join(root, "elsewhere"));
    await symlink(join(root, "elsewhere"), join(root, "link"));
    await writeFile(join(root, "file"), "");
    for (const name of ["link", "file"]) {
      const error = await rejection(requireReplaceable(join(root, name), lock));
      expect(error.message).to.include("expected a folder, or nothing");
    }
    const error = await rejection(requireReplaceable(join(root, "elsewhere"), undefined));
    expect(error.message).to.include("expected a folder that a pull has written");
    await requireReplaceable(join(root, "elsewhere"), lock);
    await requireReplaceable(join(root, "nothing"), undefined);
  });
});

describe("readLock(folder)", () => {
  let root: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "lock-"));
  });

  afterEach(() => rm(root, { recursive: true }));

  it("refuses a lock file that it does not understand: without it any release would be accepted", async () => {
    const place = join(root, "open");
    expect(await readLock(place)).to.equal(undefined);
    const text = encodeLock(lock);
    const others = ["", "{}", text.replace('"lock_version": 1', '"lock_version": 2'), text.replace("sha256:", "md5:")];
    for (const other of [...others, text.replace('"sequence": 3', '"sequence": "3"'), text.replace("pack", "pact")]) {
      await writeFile(lockPath(place), other);
      expect(await rejection(readLock(place)), other).to.include({ code: "STATE_UNUSABLE" });
    }
    await writeFile(lockPath(place), text);
    expect(await readLock(place)).to.deep.equal(lock);
    expect(await readFile(lockPath(place), "utf8")).to.include('"source": "oci://r.example/open:1"');
  });
});
