import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { repositoryRoot } from "./source-tree.ts";

const folder = join(repositoryRoot, ".github/workflows");
const texts = new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]));

interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps: readonly { readonly uses?: string; readonly run?: string }[];
}

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

describe("the workflows", () => {
  it("use other people's actions by the digest of a commit [S75]", () => {
    const used = [...texts].flatMap(([name, text]) =>
      [...text.matchAll(/\buses: (.*)$/gm)].map(([, action]) => `${name}: ${action}`),
    );
    expect(used.filter((action) => !/^\S+: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).to.deep.equal(
      [],
    );
    expect(used.length).to.be.above(5);
  });

  it("may write and prove who they are in the one job that needs it, which runs nothing of the repository", () => {
    const permissions = [...texts].flatMap(([name, text]) => {
      const { permissions: general, jobs } = parse(text) as Workflow;
      expect(
        Object.values(general).filter((each) => each !== "read"),
        name,
      ).to.deep.equal([]);
      return Object.entries(jobs).flatMap(([job, { permissions: own = {}, steps }]) => {
        const strong = Object.entries(own).filter(([, level]) => level === "write");
        const runs = steps.some(({ uses, run }) => uses?.startsWith("actions/checkout@") || run?.includes("npm ci"));
        if (strong.length > 0) expect(runs, job).to.equal(false);
        return strong.map(([scope]) => `${name} ${job}: ${scope}`);
      });
    });
    expect(permissions).to.have.members(["release.yml publish: id-token", "release.yml announce: contents"]);
  });
});
