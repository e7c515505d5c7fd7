import { join } from "node:path";
import { expect } from "chai";
import { repositoryRoot } from "../check/source-tree.ts";
import { scorePack } from "../support/pack-mutation.ts";
import { roundsOf } from "../support/rounds.ts";

/** One in so many mistakes is made: each takes all tests of its pack. */
const stride = roundsOf(3, 1);

describe("a small mistake in a shipped pack", () => {
  for (const name of ["baseline", "shell", "git", "sql", "egress", "secrets", "tool-integrity", "session-watch"]) {
    it(`is found by the pack's own tests 95 times of 100 in ${name}`, async () => {
      const { killed, survivors } = await scorePack(join(repositoryRoot, "policy-packs", name), stride);
      expect(killed).to.be.above(50 / stride);
      expect(killed / (killed + survivors.length), survivors.join("; ")).to.be.at.least(0.95);
    }).timeout(600_000);
  }
});
