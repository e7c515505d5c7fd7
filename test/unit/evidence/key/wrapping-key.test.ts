import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import {
  encryptBytes,
  openBytes,
  sealBytes,
  WrappingKey,
  WrappingKeyFolder,
} from "../../../../core/evidence/key/wrapping-key.ts";

import { rejection } from "../../../support/ledger-world.ts";

const chain = "AAECAwQFBgcICQoLDA0ODw";

describe("sealBytes(key, place, plain, random)", () => {
  const key = randomBytes(32);
  const plain = Buffer.from("what nobody else reads");
  const sealed = sealBytes(key, "here", plain, randomBytes);

  it("is opened by key and place", () => {
    expect(openBytes(key, "here", sealed)).to.deep.equal(plain);
  });

  it("differs each time", () => {
    expect(sealBytes(key, "here", plain, randomBytes)).to.not.equal(sealed);
  });

  it("of a text is that of its UTF-8 bytes, however long", () => {
    const nonce = randomBytes(12);
    for (const text of ["", "\u00fc", "a\ud83d\ude00".repeat(50_000)]) {
      const sealedText = encryptBytes(key, nonce, "here", text);
      expect(sealedText.equals(encryptBytes(key, nonce, "here", Buffer.from(text)))).to.equal(true);
      expect(openBytes(key, "here", sealedText.toString("base64"))?.toString()).to.equal(text);
    }
  });

  it("is opened by no other key, at no other place, with no bit changed", () => {
    expect(openBytes(randomBytes(32), "here", sealed)).to.equal(undefined);
    expect(openBytes(key, "there", sealed)).to.equal(undefined);
    const bytes = Buffer.from(sealed, "base64");
    for (let at = 0; at < bytes.length; at++) {
      const flipped = Buffer.from(bytes);
      flipped[at] = (flipped[at] as number) ^ 1;
      expect(openBytes(key, "here", flipped.toString("base64")), `byte ${at}`).to.equal(undefined);
    }
  });

  for (const text of ["", "AAAA", "no base64", `${sealed}=`, sealed.slice(0, 32)]) {
    it(`is not ${JSON.stringify(text.slice(0, 12))} of ${text.length}`, () => {
      expect(openBytes(key, "here", text)).to.equal(undefined);
    });
  }
});

describe("WrappingKey", () => {
  const key = WrappingKey.generate(randomBytes);

  it("derives a data key for each place, the same when it is read back from its file", () => {
    const here = key.dataKey("here");
    expect(here).to.have.length(32);
    expect(WrappingKey.parse(key.toText(chain), chain)?.dataKey("here")).to.deep.equal(here);
    expect(key.dataKey("there")).to.not.deep.equal(here);
    expect(WrappingKey.generate(randomBytes).dataKey("here")).to.not.deep.equal(here);
  });

  it("unwraps what it wrapped, read back from its file", () => {
    const dataKey = randomBytes(32);
    const wrapped = key.wrap(dataKey, "here", randomBytes);
    expect(WrappingKey.parse(key.toText(chain), chain)?.unwrap(wrapped, "here")).to.deep.equal(dataKey);
    expect(key.unwrap(wrapped, "there")).to.equal(undefined);
    expect(WrappingKey.generate(randomBytes).unwrap(wrapped, "here")).to.equal(undefined);
  });

  it("commits to fingerprints the same way after a start, and to another chain's another way", () => {
    const committed = key.commitFingerprint("sha256:aa");
    expect(committed).to.match(/^sha256:[0-9a-f]{64}$/);
    expect(WrappingKey.parse(key.toText(chain), chain)?.commitFingerprint("sha256:aa")).to.equal(committed);
    expect(key.commitFingerprint("sha256:ab")).to.not.equal(committed);
    expect(WrappingKey.generate(randomBytes).commitFingerprint("sha256:aa")).to.not.equal(committed);
  });

  it("is not read from the file of another chain", () => {
    expect(WrappingKey.parse(key.toText(chain), "other")).to.equal(undefined);
  });

  it("is not read from a file with any one character changed, or cut", () => {
    const text = key.toText(chain);
    for (let at = 0; at < text.length; at++) {
      const changed = text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1);
      expect(WrappingKey.parse(changed, chain), `character ${at}`).to.equal(undefined);
      if (at < text.length - 1) expect(WrappingKey.parse(text.slice(0, at), chain), `cut at ${at}`).to.equal(undefined);
    }
  });

  it("takes bytes of its own: a pool that goes on changes nothing", () => {
    const pool = new Uint8Array(64).fill(1);
    const pooled = WrappingKey.generate((count) => pool.subarray(0, count));
    const before = pooled.toText(chain);
    pool.fill(2);
    expect(pooled.toText(chain)).to.equal(before);
  });
});

describe("WrappingKeyFolder", () => {
  let dir: string;
  let folder: WrappingKeyFolder;

  beforeEach(async () => {
    dir = join(await mkdtemp(join(tmpdir(), "wrapping-")), "keys");
    folder = new WrappingKeyFolder(dir, randomBytes);
  });

  afterEach(() => rm(join(dir, ".."), { recursive: true }));

  it("keeps one file a chain that nobody else reads", async () => {
    const key = await folder.create(chain);
    expect(await readdir(dir)).to.deep.equal([`${chain}.wrap`]);
    expect((await stat(join(dir, `${chain}.wrap`))).mode & 0o777).to.equal(0o600);
    expect((await stat(dir)).mode & 0o777).to.equal(0o700);
    expect((await folder.find(chain))?.toText(chain)).to.equal(key.toText(chain));
  });

  it("has no key of a chain that has none, and none in a damaged file", async () => {
    expect(await folder.find(chain)).to.equal(undefined);
    await folder.create(chain);
    const path = join(dir, `${chain}.wrap`);
    await writeFile(path, (await readFile(path, "utf8")).replace("wrapping", "wrappinq"));
    expect(await folder.find(chain)).to.equal(undefined);
  });

  it("never writes over a key", async () => {
    const key = await folder.create(chain);
    expect(await rejection(folder.create(chain))).to.include({ code: "EEXIST" });
    expect((await folder.find(chain))?.toText(chain)).to.equal(key.toText(chain));
  });

  it("refuses what is no chain's id as a fault of ours", async () => {
    expect(await rejection(folder.find("../keys"))).to.be.instanceOf(TypeError);
  });
});
