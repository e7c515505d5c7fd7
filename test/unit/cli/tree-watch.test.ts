import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { TreeWatch } from "../../../core/cli/tree-watch.ts";

describe("TreeWatch", () => {
  let folder: string;
  let changes = 0;
  let blind: string[] = [];
  let tree: TreeWatch;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "tree-watch-"));
    await mkdir(join(folder, "pack/rules"), { recursive: true });
    await writeFile(join(folder, "pack/rules/a.yaml"), "1");
    await writeFile(join(folder, "gateway.yaml"), "1");
    blind = [];
    tree = watchPaths("pack", "gateway.yaml");
  });

  afterEach(async () => {
    tree.close();
    await rm(folder, { recursive: true });
  });

  for (const path of ["gateway.yaml", "pack/rules/a.yaml"]) {
    it(`hears each time that another file is renamed to ${path}`, async () => {
      for (const text of ["2", "3", "4"]) {
        await writeFile(join(folder, "next"), text);
        expect(await changed(() => rename(join(folder, "next"), join(folder, path))), text).to.equal(true);
      }
    });

    it(`hears that ${path} was written in place`, async () => {
      expect(await changed(() => writeFile(join(folder, path), "2"))).to.equal(true);
    });
  }

  it("hears of a new folder, and after refresh() of what is in it", async () => {
    expect(await changed(() => mkdir(join(folder, "pack/tests")))).to.equal(true);
    tree.refresh();
    expect(await changed(() => writeFile(join(folder, "pack/tests/a.yaml"), "1"))).to.equal(true);
  });

  it("hears of a folder that comes later", async () => {
    tree.close();
    tree = watchPaths("later");
    expect(await changed(() => mkdir(join(folder, "later")))).to.equal(true);
  });

  it("is deaf to what lies beside its paths, and to everything once closed", async () => {
    expect(await changed(() => writeFile(join(folder, "gateway.yaml.swp"), "1"))).to.equal(false);
    tree.close();
    expect(await changed(() => writeFile(join(folder, "gateway.yaml"), "2"))).to.equal(false);
  });

  it("names the folder that it cannot watch", () => {
    tree.close();
    tree = watchPaths("missing/gateway.yaml");
    expect(blind).to.deep.equal([join(folder, "missing")]);
  });

  function watchPaths(...paths: readonly string[]): TreeWatch {
    return new TreeWatch({
      paths: paths.map((path) => join(folder, path)),
      onChange: () => {
        changes++;
      },
      onBlind: (path) => blind.push(path),
    });
  }

  /** Whether something was heard within a moment of `act`. */
  async function changed(act: () => Promise<unknown>): Promise<boolean> {
    await sleep(30);
    changes = 0;
    await act();
    for (let wait = 0; changes === 0 && wait < 10; wait++) await sleep(15);
    return changes > 0;
  }
});
