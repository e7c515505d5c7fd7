import { expect } from "chai";
import { matchesGlob } from "../../../core/upstream/glob.ts";
import { matchesTemplate } from "../../../core/upstream/uri-template.ts";

describe("matchesGlob(text, pattern)", () => {
  const table: readonly (readonly [string, string, boolean])[] = [
    ["read_file", "read_*", true],
    ["read_file", "*", true],
    ["read_file", "*_file", true],
    ["read_file", "r*d*e", true],
    ["read_file", "read_file", true],
    ["read_file", "Read_*", false],
    ["read_file", "write_*", false],
    ["read_file", "read_fil", false],
    ["aab", "*ab", true],
    ["", "*", true],
    ["", "", true],
  ];
  for (const [text, pattern, expected] of table) {
    it(`${pattern} ${expected ? "matches" : "does not match"} ${JSON.stringify(text)}`, () =>
      expect(matchesGlob(text, pattern)).to.equal(expected));
  }

  it("does not explode", () => {
    const start = performance.now();
    expect(matchesGlob("a".repeat(2_000), `${"*a".repeat(500)}b`)).to.equal(false);
    expect(performance.now() - start).to.be.lessThan(200);
  });
});

describe("matchesTemplate(uri, template)", () => {
  const table: readonly (readonly [string, string, boolean])[] = [
    ["test://static/resource/1", "test://static/resource/{id}", true],
    ["test://static/resource/", "test://static/resource/{id}", false],
    ["file:///a/b/c.txt", "file:///{+path}", true],
    ["note://2026/07/x.md", "note://{year}/{month}/{name}.md", true],
    ["note://2026/x.md", "note://{year}/{month}/{name}.md", false],
    ["other://x", "note://{name}", false],
    ["plain://x", "plain://x", true],
    ["plain://xy", "plain://x", false],
    ["a://b", "a://{", false],
  ];
  for (const [uri, template, expected] of table) {
    it(`${uri} ${expected ? "could" : "could not"} come from ${template}`, () =>
      expect(matchesTemplate(uri, template)).to.equal(expected));
  }
});
