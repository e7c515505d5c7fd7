import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { repositoryRoot } from "./source-tree.ts";

interface LockedPackage {
  readonly dev?: boolean;
  readonly engines?: { readonly node?: string };
  readonly hasInstallScript?: boolean;
  readonly resolved?: string;
  readonly integrity?: string;
  /** A folder of this repository. */
  readonly link?: boolean;
}

/** The oldest Node that `package.json` promises. */
const oldest = [20, 19, 0] as const;

const lock = JSON.parse(readFileSync(join(repositoryRoot, "package-lock.json"), "utf8")) as {
  readonly packages: Readonly<Record<string, LockedPackage>>;
};
const locked = Object.entries(lock.packages).filter(([path, { link }]) => path.startsWith("node_modules/") && !link);
const runtime = locked.filter(([, { dev }]) => dev !== true);

describe("the locked dependencies", () => {
  it("all run on the oldest Node that is promised [S75]", () => {
    const range = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8")).engines.node as string;
    expect(range).to.equal(">=20.19");
    const refused = runtime.filter(([, { engines }]) => !admits(engines?.node ?? "*"));
    expect(refused.map(([path, { engines }]) => `${path}: ${engines?.node}`)).to.deep.equal([]);
    expect(runtime.length).to.be.above(50);
  });

  // It falls back on the builds that it ships.
  it("need no install script [S75]", () => {
    const scripted = runtime.filter(([, { hasInstallScript }]) => hasInstallScript === true).map(([path]) => path);
    expect(scripted).to.deep.equal(["node_modules/classic-level"]);
  });

  it("are each pinned by their digest [S75]", () => {
    expect(locked.filter(([, { integrity }]) => integrity === undefined).map(([path]) => path)).to.deep.equal([]);
  });
});

describe("admits(range)", () => {
  it("reads the ranges that engines are given in", () => {
    for (const range of [
      "*",
      ">=20",
      ">= 18.0.0",
      ">=0.6.x",
      ">= 10.x",
      "^16 || ^18 || >=20",
      "^20.19.0 || >=22.12.0",
    ]) {
      expect(admits(range), range).to.equal(true);
    }
    for (const range of [">=22", ">=20.19.1", ">=20.20", "^18", "^18 || ^22", "^20.20.0", "18"]) {
      expect(admits(range), range).to.equal(false);
    }
    expect(admits("20 || >=22")).to.equal(true);
  });

  it("refuses to guess", () => {
    expect(() => admits("<21")).to.throw("expected a range of `>=`, `^` or a version, got `<21`");
  });
});

/** Whether a range of Node versions holds the oldest that is promised. Throws for what it cannot read. */
function admits(range: string): boolean {
  return range.split("||").some((part) => {
    const match = /^(>=|\^|)\s*(\*|\d+)(?:\.(\d+|x))?(?:\.(\d+|x))?$/.exec(part.trim());
    if (match === null) throw new Error(`expected a range of \`>=\`, \`^\` or a version, got \`${part.trim()}\``);
    const [, operator, major = "*", minor = "x", patch = "x"] = match;
    if (major === "*") return true;
    const least = [major, minor, patch].map((each) => (each === "x" ? 0 : Number(each)));
    const same = operator === ">=" || Number(major) === oldest[0];
    return same && compare(oldest, least) >= 0;
  });
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [index, each] of a.entries()) {
    const difference = each - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
