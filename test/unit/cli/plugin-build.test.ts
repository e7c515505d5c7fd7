import { readdirSync, readFileSync } from "node:fs";
import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { repositoryRoot } from "../../check/source-tree.ts";
import { runCommand } from "../../support/command-host.ts";

const plugins = join(repositoryRoot, "plugins");
const names = readdirSync(plugins, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

describe("gateway plugin build", () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "plugin-build-"));
    await symlink(join(repositoryRoot, "node_modules"), join(folder, "node_modules"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  for (const name of names) {
    it(`gives the committed bytes and manifest of ${name}, wherever its source lies`, async () => {
      const copy = join(folder, "elsewhere");
      await cp(join(plugins, name), copy, { recursive: true });
      await rm(join(copy, "plugin.wasm"));
      const { code, stdout, stderr } = await runCommand(["plugin", "build", copy]);
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
      expect(stdout).to.include(`${name} `);
      for (const file of ["plugin.wasm", "plugin.yaml"]) {
        expect(readFileSync(join(copy, file)).equals(readFileSync(join(plugins, name, file))), file).to.equal(true);
      }
    });
  }
});
