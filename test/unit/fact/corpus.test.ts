import { expect } from "chai";
import * as git from "../../bench/fact/git.ts";
import * as path from "../../bench/fact/path.ts";
import * as shell from "../../bench/fact/shell.ts";
import * as url from "../../bench/fact/url.ts";
import { factCorpus } from "../../support/fact-corpus.ts";

for (const { name, judge } of [url, path, shell, git]) {
  describe(`the corpus of ${name} facts`, () => {
    const corpus = factCorpus(name);
    const of = (label: string): typeof corpus => corpus.filter((entry) => entry.label === label);

    it("has at least 300 inputs, each once, with the reason for its label", () => {
      expect(corpus).to.have.length.at.least(300);
      expect(new Set(corpus.map(({ input }) => input)).size).to.equal(corpus.length);
      expect(corpus.filter(({ why }) => !why)).to.deep.equal([]);
      expect(of("harmful").length + of("near").length).to.equal(corpus.length);
    });

    it("allows nothing harmful", () => {
      expect(of("harmful").filter((entry) => judge(entry) === "allowed")).to.deep.equal([]);
    });

    it("allows at least 90 % of the near misses", () => {
      const near = of("near");
      expect(near.filter((entry) => judge(entry) === "allowed").length).to.be.at.least(0.9 * near.length);
    });
  });
}

describe("the near misses of the corpora of urls and paths", () => {
  for (const { name, judge } of [url, path]) {
    it(`are not blocked: ${name}`, () => {
      const near = factCorpus(name).filter(({ label }) => label === "near");
      expect(near.filter((entry) => judge(entry) === "blocked")).to.deep.equal([]);
    });
  }
});
