import { chmod, lstat, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { BackupFolder, backupName } from "../../../core/backup/folder.ts";
import { rejection } from "../../support/ledger-world.ts";

describe("BackupFolder", () => {
  let root: string;
  let data: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "backup-folder-"));
    data = join(root, "data");
    await mkdir(data);
  });
  afterEach(() => rm(root, { recursive: true }));

  const at = (name: string): string => join(root, name);
  const nameOf = (second: number): string => backupName(`2026-05-01T10:00:0${second}.000Z`, Buffer.alloc(4, second));

  async function refusal(path: string): Promise<string> {
    const error = await rejection(new BackupFolder(path, data).open());
    expect(error).to.be.instanceOf(GatewayError).with.property("code", "STATE_UNUSABLE");
    return error.message.replace(`state cannot be used: \`resilience.backup_dir\`, \`${path}\`, `, "");
  }

  it("is made with mode 0700, and its files with 0600", async () => {
    const folder = new BackupFolder(at("a/b"), data);
    await folder.open();
    await (await folder.create(nameOf(1))).close();
    await folder.publish(nameOf(1));
    expect((await lstat(at("a/b"))).mode & 0o777).to.equal(0o700);
    expect((await lstat(join(at("a/b"), nameOf(1)))).mode & 0o777).to.equal(0o600);
    expect(await folder.file(nameOf(1))).to.deep.equal({
      name: nameOf(1),
      madeAt: "2026-05-01T10:00:01.000Z",
      bytes: 0,
    });
  });

  describe("is refused", () => {
    it("where it is a symbolic link [S70]", async () => {
      await mkdir(at("elsewhere"), { mode: 0o700 });
      await symlink(at("elsewhere"), at("link"));
      expect(await refusal(at("link"))).to.equal("is a symbolic link; name the folder itself");
    });

    it("where it is a file [S70]", async () => {
      await writeFile(at("file"), "");
      expect(await refusal(at("file"))).to.match(/^cannot be used \(EEXIST\)/);
    });

    for (const mode of [0o770, 0o707, 0o740, 0o701]) {
      it(`where its mode is ${mode.toString(8)} [S70]`, async () => {
        await mkdir(at("open"));
        await chmod(at("open"), mode);
        expect(await refusal(at("open"))).to.equal("is open to others; `chmod 700` it");
      });
    }

    it("where it is the data folder, lies in it, or around it [S70]", async () => {
      await Promise.all([chmod(data, 0o700), chmod(root, 0o700)]);
      const inside = "lies in `data_dir`: what takes one takes both";
      expect(await refusal(data)).to.equal(inside);
      expect(await refusal(join(data, "backups"))).to.equal(inside);
      expect(await refusal(join(root, "x", "..", "data", "backups"))).to.equal(inside);
      expect(await refusal(root)).to.equal("lies around `data_dir`: its keys do not belong there");
    });

    it("where a link above it leads into the data folder [S70]", async () => {
      await symlink(data, at("way"));
      expect(await refusal(at("way/backups"))).to.equal("lies in `data_dir`: what takes one takes both");
    });

    it("where it became a link since it was opened, at each use [S70]", async () => {
      const folder = new BackupFolder(at("backups"), data);
      await folder.open();
      await rm(at("backups"), { recursive: true });
      await mkdir(at("elsewhere"), { mode: 0o700 });
      await symlink(at("elsewhere"), at("backups"));
      for (const use of [() => folder.create(nameOf(1)), () => folder.names()]) {
        expect((await rejection(use())).message).to.match(/is a symbolic link/);
      }
      expect(await readdir(at("elsewhere"))).to.deep.equal([]);
    });
  });

  it("takes no name but its own into a path [S70]", async () => {
    const folder = new BackupFolder(at("backups"), data);
    await folder.open();
    const names = [
      "../data",
      "/etc/passwd",
      "",
      "backup-1.jsonl",
      `${nameOf(1)}/../../x`,
      `${nameOf(1)}\0`,
      `./${nameOf(1)}`,
    ];
    for (const name of names) {
      for (const use of [() => folder.create(name), () => folder.publish(name), () => folder.discard(name)]) {
        expect(await rejection(use()), name).to.be.instanceOf(TypeError);
      }
    }
  });

  it("writes over no file and through no link that is there [S70]", async () => {
    const folder = new BackupFolder(at("backups"), data);
    await folder.open();
    await symlink(at("victim"), folder.partialPath(nameOf(1)));
    await writeFile(folder.partialPath(nameOf(2)), "mine");
    for (const second of [1, 2]) {
      expect((await rejection(folder.create(nameOf(second)))) as NodeJS.ErrnoException).to.have.property(
        "code",
        "EEXIST",
      );
    }
    expect(await readdir(root)).to.have.members(["backups", "data"]);
  });

  it("lists its own files alone, the latest first, and keeps as many as it is told", async () => {
    const folder = new BackupFolder(at("backups"), data);
    await folder.open();
    for (const second of [2, 1, 3]) await writeFile(join(at("backups"), nameOf(second)), "");
    await writeFile(join(at("backups"), "notes.txt"), "");
    await mkdir(join(at("backups"), nameOf(4)));
    await symlink(data, join(at("backups"), nameOf(5)));
    expect(await folder.names()).to.deep.equal([nameOf(3), nameOf(2), nameOf(1)]);
    await folder.prune(2);
    expect(await readdir(at("backups"))).to.have.members([nameOf(3), nameOf(2), "notes.txt", nameOf(4), nameOf(5)]);
  });

  it("removes what a killed process left half written, and nothing else", async () => {
    const folder = new BackupFolder(at("backups"), data);
    await folder.open();
    await (await folder.create(nameOf(1))).close();
    await writeFile(join(at("backups"), ".partial-of-somebody"), "");
    expect(await folder.names()).to.deep.equal([]);
    await folder.open();
    expect(await readdir(at("backups"))).to.deep.equal([".partial-of-somebody"]);
  });
});
