import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { SigningKey, VerifyingKey } from "../../../../core/action/signing-key.ts";
import {
  type Checkpoint,
  checkpointKeyName,
  checkpointSigner,
  isCheckpointSignedBy,
  isSignedBy,
  type NoteSigner,
  noteKeyHash,
  noteSigner,
  parseCheckpoint,
  parseNote,
  type SignedCheckpoint,
  signCheckpoint,
  signNote,
} from "../../../../core/evidence/tree/checkpoint.ts";

const key = SigningKey.fromSeed(Buffer.alloc(32, 1));
const other = SigningKey.fromSeed(Buffer.alloc(32, 2));
const checkpoint: Checkpoint = {
  chain: "wJzQd0mQ0m0Xq2m3r1T3Lw",
  size: 3,
  root: Buffer.alloc(32, 0xab),
  head: "cd".repeat(32),
  time: "2026-05-01T10:00:00.000Z",
};

function signerOf(by: SigningKey): NoteSigner {
  return checkpointSigner(checkpoint.chain, by);
}

function parsed(note: string): SignedCheckpoint {
  const read = parseCheckpoint(note);
  if (read === undefined) throw new Error("expected a checkpoint");
  return read;
}

describe("SigningKey", () => {
  it("has the key of RFC 8032, test 1", () => {
    const seed = Buffer.from("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "hex");
    const rfc = SigningKey.fromSeed(seed);
    expect(rfc.public.raw.toString("hex")).to.equal("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    expect(rfc.sign("").toString("hex")).to.equal(
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    );
  });

  it("comes back from its PEM", () => {
    expect(SigningKey.fromPem(key.toPem()).id).to.equal(key.id);
  });

  it("refuses a seed of another length", () => {
    expect(() => SigningKey.fromSeed(Buffer.alloc(31))).to.throw(TypeError, "expected 32 bytes, got 31");
  });
});

describe("VerifyingKey.parse(text)", () => {
  it("takes the one base64 spelling of 32 bytes", () => {
    expect(VerifyingKey.parse(key.public.text)?.id).to.equal(key.id);
    const twice = key.public.text.replace(/.=$/, (end) => (end[0] === "w" ? "x=" : `${end[0]}`));
    for (const bad of ["", "AAAA", `${key.public.text}\n`, twice]) expect(VerifyingKey.parse(bad)).to.equal(undefined);
  });
});

describe("signNote(text, signers)", () => {
  it("writes what C2SP describes: key hash over name, newline, 0x01 and key; signature over the text", () => {
    const note = signNote("one\ntwo\n", [noteSigner("example.com/log", key)]);
    const [, line = ""] = note.split("\n\n");
    const blob = Buffer.from(line.trim().split(" ")[2] ?? "", "base64");
    expect(line).to.match(/^— example\.com\/log [A-Za-z0-9+/=]+\n$/);
    expect(blob.subarray(0, 4)).to.deep.equal(noteKeyHash("example.com/log", key.public));
    expect(key.public.verify("one\ntwo\n", blob.subarray(4))).to.equal(true);
  });

  it("is checked by openssl and python alike", () => {
    const folder = mkdtempSync(join(tmpdir(), "note-"));
    try {
      const note = signCheckpoint(checkpoint, [signerOf(key)]);
      const at = (name: string): string => join(folder, name);
      const spki = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), key.public.raw]);
      writeFileSync(at("key.der"), spki);
      writeFileSync(at("note"), note);
      const program = `
import base64, hashlib, sys
text, lines = open(sys.argv[1], encoding="utf8").read().rsplit("\\n\\n", 1)
_, name, blob = lines.split()
blob, key = base64.b64decode(blob), open(sys.argv[2], "rb").read()[-32:]
assert blob[:4] == hashlib.sha256(name.encode() + b"\\n\\x01" + key).digest()[:4]
open(sys.argv[3], "wb").write((text + "\\n").encode()); open(sys.argv[4], "wb").write(blob[4:])`;
      execFileSync("python3", ["-c", program, at("note"), at("key.der"), at("text"), at("signature")]);
      const verify = ["pkeyutl", "-verify", "-pubin", "-inkey", at("key.der"), "-keyform", "DER", "-rawin"];
      const said = execFileSync("openssl", [...verify, "-in", at("text"), "-sigfile", at("signature")], {
        encoding: "utf8",
      });
      expect(said).to.include("Signature Verified Successfully");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("refuses texts and names that would make another note", () => {
    for (const text of ["", "no end", "a\0b\n", "a\rb\n", "\ud800\n"]) {
      expect(() => signNote(text, [noteSigner("n", key)]), text).to.throw(TypeError, "expected lines");
    }
    for (const name of ["", "a b", "a+b", "a\nb"]) {
      expect(() => signNote("a\n", [noteSigner(name, key)]), name).to.throw(TypeError, "expected a key name");
    }
  });
});

describe("isSignedBy(note, key)", () => {
  const note = signNote("text\n", [noteSigner("n", key)]);

  it("holds for that key and that name alone", () => {
    const read = parseNote(note);
    if (read === undefined) throw new Error("expected a note");
    expect(isSignedBy(read, { name: "n", key: key.public })).to.equal(true);
    expect(isSignedBy(read, { name: "m", key: key.public })).to.equal(false);
    expect(isSignedBy(read, { name: "n", key: other.public })).to.equal(false);
  });

  it("does not hold where one of two signatures of the key is bad", () => {
    const bad = signNote("other\n", [noteSigner("n", key)]).split("\n\n")[1] ?? "";
    const read = parseNote(note + bad);
    if (read === undefined) throw new Error("expected a note");
    expect(isSignedBy(read, { name: "n", key: key.public })).to.equal(false);
  });

  it("does not hold for a changed text", () => {
    const read = parseNote(note.replace("text", "test"));
    expect(read !== undefined && isSignedBy(read, { name: "n", key: key.public })).to.equal(false);
  });
});

describe("parseNote(note)", () => {
  it("reads nothing from what is no note", () => {
    const good = signNote("text\n", [noteSigner("n", key)]);
    const bad = ["", "\n\n", "text\n", good.slice(0, -1), `${good}\n`, good.replace("—", "-"), good.replace("=", "")];
    for (const text of [...bad, `text\n\n${"— n AAAA\n".repeat(2)}`]) expect(parseNote(text), text).to.equal(undefined);
  });
});

describe("parseCheckpoint(text)", () => {
  it("reads back what was signed", () => {
    const { note, ...read } = parsed(signCheckpoint(checkpoint, [signerOf(key)]));
    expect(read).to.deep.equal(checkpoint);
    expect(note.text).to.equal(
      `agent-governance-gateway/evidence/wJzQd0mQ0m0Xq2m3r1T3Lw\n3\n${"q6ur".repeat(10)}q6s=\n` +
        `head ${"cd".repeat(32)}\ntime 2026-05-01T10:00:00.000Z\n`,
    );
    expect(note.signatures.map(({ name }) => name)).to.deep.equal([checkpointKeyName(checkpoint.chain, key.id)]);
  });

  it("refuses every other form of it", () => {
    const text = (from: string | RegExp, to: string): string =>
      signNote(parsed(signCheckpoint(checkpoint, [signerOf(key)])).note.text.replace(from, to), [noteSigner("n", key)]);
    const bad = [
      text("agent-governance", "another"),
      text("\n3\n", "\n0\n"),
      text("\n3\n", "\n03\n"),
      text("\n3\n", "\n9999999999999999\n"),
      text("q6s=", "q6t="),
      text("q6ur", ""),
      text("head ", "tail "),
      text("cdcd", "CDcd"),
      text("T10:00:00.000Z", " 10:00:00"),
      text(/$/, "more\n"),
      text(/time .*\n/, ""),
    ];
    for (const note of bad) expect(parseCheckpoint(note), note).to.equal(undefined);
  });
});

describe("isCheckpointSignedBy(checkpoint, keys)", () => {
  it("wants every key", () => {
    const one = parsed(signCheckpoint(checkpoint, [signerOf(key)]));
    const both = parsed(signCheckpoint(checkpoint, [signerOf(key), signerOf(other)]));
    expect(isCheckpointSignedBy(one, [key.public])).to.equal(true);
    expect(isCheckpointSignedBy(one, [key.public, other.public])).to.equal(false);
    expect(isCheckpointSignedBy(both, [key.public, other.public])).to.equal(true);
    expect(isCheckpointSignedBy(one, [])).to.equal(false);
  });
});
