import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "chai";
import { repositoryRoot } from "../check/source-tree.ts";

const shipped =
  /^(?:dist\/(?:core|sdk)\/|core\/(?:admin\/console\/asset|cli\/deploy|fact\/effect)\/|policy-packs\/|plugins\/|sdk\/|(?:CHANGELOG|README)\.md$|LICENSE$|package\.json$)/;

describe("npm pack", () => {
  it("ships the program and what it reads, and no key, no data and no test of the gateway", async () => {
    const { stdout } = await promisify(execFile)("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
      cwd: repositoryRoot,
      maxBuffer: 16_777_216,
    });
    const [{ files }] = JSON.parse(stdout) as [{ readonly files: readonly { readonly path: string }[] }];
    const paths = files.map(({ path }) => path);
    expect(paths).to.include.members([
      "dist/core/cli/main.js",
      "policy-packs/baseline/pack.yaml",
      "policy-packs/sql/data/outside.json",
      "package.json",
    ]);
    expect(paths.filter((path) => !shipped.test(path))).to.deep.equal([]);
    expect(
      paths.filter((path) => /\.(?:key|pem)$|(?:^|\/)data\/.*\.(?:ldb|log)$|\.test\.\w+$/.test(path)),
    ).to.deep.equal([]);
  });
});
