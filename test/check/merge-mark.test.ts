import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { repositoryRoot } from "./source-tree.ts";

/** The lines, from 1, that a merge left for somebody to settle. */
function mergeMarks(text: string): readonly number[] {
  return text.split("\n").flatMap((line, at) => (/^(<{7}|>{7}|\|{7})( |$)/.test(line) ? [at + 1] : []));
}

describe("tracked files", () => {
  it("have no merge marks", () => {
    const names = execFileSync("git", ["ls-files", "-z"], { cwd: repositoryRoot, encoding: "utf8" }).split("\0");
    const paths = names.filter((name) => name !== "");
    expect(paths).to.include("test/check/merge-mark.test.ts");
    const marked = paths.flatMap((path) =>
      mergeMarks(readFileSync(join(repositoryRoot, path), "latin1")).map((line) => `${path}:${line}`),
    );
    expect(marked).to.deep.equal([]);
  });
});

describe("mergeMarks(text)", () => {
  it("finds what stands around either side, and takes no underline or arrow for it", () => {
    const [ours, theirs, base] = ["<", ">", "|"].map((mark) => mark.repeat(7));
    const merged = `a\n${ours} HEAD\nb\n${base} before\nc\n=======\nd\n${theirs} main\n`;
    expect(mergeMarks(merged)).to.deep.equal([2, 4, 8]);
    expect(mergeMarks(`title\n=======\n <<<<<<< x\n>>>>>>>>> x\n`)).to.deep.equal([]);
  });
});
