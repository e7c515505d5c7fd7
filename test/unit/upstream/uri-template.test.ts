import { expect } from "chai";
import { matchesTemplate } from "../../../core/upstream/group.ts";

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
