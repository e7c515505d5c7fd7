import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { repositoryRoot } from "../../check/source-tree.ts";
import { coverOneCall } from "../../shape/call-coverage.ts";

describe("core/README.md", () => {
  it("names the files that one allowed call runs, all of them and no others", async () => {
    const page = readFileSync(join(repositoryRoot, "core/README.md"), "utf8");
    const [, diagram = ""] = /```text call\n([\s\S]*?)```/.exec(page) ?? [];
    const named = diagram.match(/[a-z][a-z/-]*\.ts/g)?.map((file) => `core/${file}`) ?? [];
    const { files } = await coverOneCall();
    expect(named.toSorted()).to.deep.equal(files.map(({ path }) => path).toSorted());
  });
});
