import { expect } from "chai";
import { readSourceTree } from "./source-tree.ts";

const clock = /performance\.now|Date\.now|hrtime|elapsedMs|tookMs|waitedMs|stallMs|leastMilliseconds/;
/** An expectation that names a clock before its statement ends, on its own line or the next. */
const assertion = new RegExp(String.raw`^[^\n]*\bexpect\((?:(?!;)[^\n])*\n?(?:(?!;)[^\n])*(?:${clock.source})`);

/** Timestamps that are compared as data: when something says it was made. */
const timestamps: ReadonlyMap<string, RegExp> = new Map([
  ["test/e2e/live/live.test.ts", /payload\.time/],
  ["test/e2e/session/detector.test.ts", /Date\.parse\(time\)/],
  ["test/e2e/ticket/use.test.ts", /verifyBundle\(/],
  ["test/unit/cli/doctor/content.test.ts", /judgeCheckpoint\(/],
  ["test/unit/provider/answer.test.ts", /body\.created/],
]);

/** Returns the lines on which an expectation depends on how long something took. */
function clockAssertions(source: string, allowed?: RegExp): readonly number[] {
  const lines = source.split("\n");
  return lines.flatMap((line, at) => {
    const isAsserted = /\bexpect\(/.test(line) && assertion.test(`${line}\n${lines[at + 1] ?? ""}`);
    return isAsserted && !allowed?.test(line) ? [at + 1] : [];
  });
}

describe("tests outside `test/bench`", () => {
  it("assert nothing about the time that something takes", () => {
    const found = [...readSourceTree(["test"], [".test.ts"])].flatMap(([path, source]) =>
      path.startsWith("test/bench/") || path === "test/check/clock.test.ts"
        ? []
        : clockAssertions(source, timestamps.get(path)).map((line) => `${path}:${line}`),
    );
    expect(found).to.deep.equal([]);
  });
});

describe("clockAssertions(source)", () => {
  const now = "performance.now()";

  it("finds a clock in an expectation, on its line or the next", () => {
    for (const source of [
      `expect(${now} - begun).to.be.below(100);`,
      `expect(\n  Date.now() - begun,\n).to.be.below(100);`,
      "expect(elapsedMs).to.be.below(100);",
      "expect(Math.max(1, stallMs)).to.be.below(limit);",
    ]) {
      expect(clockAssertions(source), source).to.deep.equal([1]);
    }
  });

  it("passes clocks that measure, bound a wait, or stand in another statement", () => {
    for (const source of [
      `const begun = ${now};\nexpect(done).to.equal(true);`,
      `expect(done).to.equal(true);\nconst end = ${now} + 60_000;`,
      `for (const end = ${now} + 60_000; ${now} < end; ) await step();`,
    ]) {
      expect(clockAssertions(source), source).to.deep.equal([]);
    }
  });

  it("passes a timestamp that is on the list", () => {
    expect(clockAssertions("expect(read(made, Date.now())).to.equal(1);", /read\(made/)).to.deep.equal([]);
  });
});

/**
 * The uses of the wall clock in a running gateway, and what each is for. What decides by the time that has passed gets gateway time
 * or the monotonic clock: somebody who sets the wall clock changes no budget, window, sweep or deadline.
 */
const wallClockUses: Readonly<Record<string, readonly [uses: number, purpose: string]>> = {
  "core/compose/access.ts": [1, "the claims of access tokens, which others date"],
  "core/compose/compose.ts": [
    4,
    "times of records, live events and approvals that a start ends; manifests and task references, which others date",
  ],
  "core/compose/console.ts": [1, "times that people are shown; ID tokens, which others date"],
  "core/compose/endpoints.ts": [3, "times of actions"],
  "core/compose/gateway.ts": [1, "times of actions"],
  "core/compose/identity.ts": [2, "times in ids; what gateway time is compared with"],
  "core/compose/operation.ts": [1, "times of explained actions"],
  "core/compose/outbound.ts": [2, "times of spans and of translated answers; dates in Retry-After"],
  "core/compose/permits.ts": [3, "times of approvals, by which a start judges them, of notices and of definitions"],
  "core/compose/policies.ts": [1, "signatures, which others date"],
  "core/evidence/handler.ts": [1, "that a time which an operator gives is past"],
  "core/observe/metrics.ts": [1, "times of exemplars"],
};

describe("the wall clock", () => {
  it("is used in `core` by the command line, and where it is listed", () => {
    const found: Record<string, number> = {};
    for (const [path, source] of readSourceTree(["core"], [".ts"])) {
      const uses = source.match(/Date\.now\b|new Date\(\)/g)?.length ?? 0;
      if (uses > 0 && !path.startsWith("core/cli/")) found[path] = uses;
    }
    expect(found).to.deep.equal(
      Object.fromEntries(Object.entries(wallClockUses).map(([path, [uses]]) => [path, uses])),
    );
  });
});
