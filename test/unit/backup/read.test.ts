import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { SigningKey } from "../../../core/action/signing-key.ts";
import { entryLine, headerLine, markLine, sealLine } from "../../../core/backup/content.ts";
import { readBackup } from "../../../core/backup/read.ts";
import { SealedLines, sealLines } from "../../../core/backup/write.ts";
import { BackupWorld } from "../../support/backup-world.ts";
import { rejection } from "../../support/ledger-world.ts";

const unfit = "backup refused: its seal does not fit: a line, or the seal, was changed, added or taken out";
const noSeal = "backup refused: its last line is no seal: the file was cut, or its end changed";
const foreign = "backup refused: expected a backup, got a file of another kind";

describe("readBackup(path)", () => {
  let world: BackupWorld;
  let whole: Buffer;

  before(async () => {
    world = await BackupWorld.create();
    for (let at = 0; at < 3; at++) await world.ledger.act();
    whole = await readFile(await world.make());
  });
  after(() => world.remove());

  async function lay(content: string | Uint8Array): Promise<string> {
    const path = join(world.root, `${randomBytes(8).toString("hex")}.jsonl`);
    await writeFile(path, content);
    return path;
  }

  async function refusal(content: string | Uint8Array): Promise<string> {
    return (await rejection(readBackup(await lay(content)))).message;
  }

  const linesOf = (): string[] => whole.toString("utf8").trimEnd().split("\n");
  const joined = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");

  it("says who sealed it, and over how many lines", async () => {
    const { header, lines, key } = await readBackup(await lay(whole));
    expect(header).to.include({ gateway: "0.0.0" });
    expect(lines).to.equal(linesOf().length - 1);
    const { public_key: text } = JSON.parse(linesOf().at(-1) ?? "") as { public_key: string };
    expect(key.text).to.equal(text);
  });

  describe("refuses one bit that is another", () => {
    /** Where the bit is, and what is said of it. */
    const places: Readonly<Record<string, readonly [at: () => number, said: string | RegExp]>> = {
      "in the name of the format": [() => whole.indexOf("gateway-backup-v1") + 3, foreign],
      "in its version": [
        () => whole.indexOf("gateway-backup-v1") + 16,
        "backup refused: expected format `gateway-backup-v1`, got `gateway-backup-v0`; restore it with the version that made it",
      ],
      "in the time it was made": [() => whole.indexOf("made_at") + 12, unfit],
      "in its installation": [() => whole.indexOf("installation") + 17, unfit],
      "in a mark": [() => whole.indexOf('"seq":') + 6, unfit],
      "in a key of the store": [() => whole.indexOf('["acme') + 3, unfit],
      "in a record": [() => whole.indexOf("{record}/acme/") + 200, unfit],
      "in the last entry": [() => whole.lastIndexOf('["') + 3, unfit],
      "in an end of line": [() => whole.indexOf("\n"), foreign],
      "in the key that sealed it": [() => whole.lastIndexOf("public_key") + 20, unfit],
      "in the text of the seal": [() => whole.lastIndexOf("agent-governance-gateway/backup/") + 40, unfit],
      "in the signature": [() => whole.lastIndexOf("=\\n") - 20, unfit],
      "in the end of the seal": [() => whole.length - 2, noSeal],
      "in the last byte": [() => whole.length - 1, "backup refused: its last line does not end: the file was cut"],
    };

    for (const [place, [at, said]] of Object.entries(places)) {
      it(`${place} [S70]`, async () => {
        const changed = Buffer.from(whole);
        changed[at()] = (changed[at()] ?? 0) ^ 1;
        expect(await refusal(changed)).to.match(said instanceof RegExp ? said : exactly(said));
      });
    }
  });

  it("refuses every cut of the end [S70]", async () => {
    const step = Math.ceil(whole.length / 200);
    for (let size = 0; size < whole.length; size += step) {
      expect(await refusal(whole.subarray(0, size)), `${size} bytes`).to.match(
        /^backup refused: (?:expected a backup, got an empty file|its last line|\S+ has no end: the file was cut)/,
      );
    }
  });

  it("refuses lines that were taken out, added, moved or put in twice [S70]", async () => {
    const lines = linesOf();
    const [first = "", second = "", ...rest] = lines;
    const others: Readonly<Record<string, readonly string[]>> = {
      "taken out": [first, ...rest],
      added: [first, second, entryLine("acme/zzz", "1"), ...rest],
      moved: [first, ...rest.slice(0, 1), second, ...rest.slice(1)],
      twice: [first, second, second, ...rest],
    };
    for (const [name, changed] of Object.entries(others)) expect(await refusal(joined(changed)), name).to.equal(unfit);
    expect(await refusal(joined([...lines, entryLine("a", "b")]))).to.equal(noSeal);
    expect(await refusal(joined([...lines, lines.at(-1) ?? ""]))).to.equal(unfit);
  });

  it("refuses the seal of another data folder [S70]", async () => {
    const sealed = new SealedLines();
    const lines = linesOf().slice(0, -1);
    for (const line of lines) sealed.add(line);
    const other = { id: "another", key: SigningKey.fromSeed(randomBytes(32)) };
    expect(await refusal(joined([...lines, sealLine(sealLines(sealed, other))]))).to.equal(unfit);
  });

  it("refuses what is no backup [S70]", async () => {
    const random = randomBytes(1_000_000).map((byte) => (byte === 0x0a ? 0 : byte));
    expect(await refusal(random)).to.equal("backup refused: expected a line of at most 65536 bytes, got a longer one");
    for (const text of ["{}\n{}\n", "null\n[]\n", "\n\n", '{"format":1}\n\n', "PK\n\n"]) {
      expect(await refusal(text), text).to.equal(foreign);
    }
    expect(await refusal("")).to.equal("backup refused: expected a backup, got an empty file");
  });

  it("follows no link, and waits for no pipe [S70]", async () => {
    const [link, pipe] = [join(world.root, "link"), join(world.root, "pipe")];
    await symlink(await lay(whole), link);
    execFileSync("mkfifo", [pipe]);
    expect((await rejection(readBackup(link))).message).to.equal(`backup refused: \`${link}\` is a symbolic link`);
    expect((await rejection(readBackup(pipe))).message).to.equal(`backup refused: expected \`${pipe}\` to be a file`);
    expect((await rejection(readBackup(join(world.root, "none")))).message).to.match(/cannot be read: ENOENT$/);
  });

  describe("with a sink, what is sealed must be in order", () => {
    const installation = { id: "here", key: SigningKey.fromSeed(randomBytes(32)) };
    const header = headerLine({ name: "b", madeAt: "2026-01-01T00:00:00.000Z", gateway: "0", installation: "here" });
    const mark = markLine({ tenant: "acme", chain: "c", seq: 0, head: "0" });
    const sink = { mark: () => undefined, entry: () => undefined, flush: async () => undefined };

    function seal(...lines: readonly string[]): Promise<string> {
      const sealed = new SealedLines();
      for (const line of [header, ...lines]) sealed.add(line);
      return lay(joined([header, ...lines, sealLine(sealLines(sealed, installation))]));
    }

    it("takes marks, then ascending keys", async () => {
      const path = await seal(mark, entryLine("a", "1"), entryLine("b", "2"));
      expect((await readBackup(path, { sink })).lines).to.equal(4);
    });

    for (const [name, said, lines] of [
      ["a key twice", "expected keys that ascend", [entryLine("a", "1"), entryLine("a", "2")]],
      ["a key out of order", "expected keys that ascend", [entryLine("b", "1"), entryLine("a", "2")]],
      ["a mark behind an entry", "expected marks before entries", [entryLine("a", "1"), mark]],
      ["another line", "expected a mark or an entry, got another line", ["[1,2]"]],
      ["an entry of three", "expected a mark or an entry, got another line", ['["a","b","c"]']],
    ] as const) {
      it(`refuses ${name}, whoever sealed it [S70]`, async () => {
        expect((await rejection(readBackup(await seal(...lines), { sink }))).message).to.equal(
          `backup refused: ${said}`,
        );
      });
    }
  });
});

function exactly(text: string): RegExp {
  return new RegExp(`^${text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`);
}
