import { expect } from "chai";
import { readPath } from "../../../core/fact/path.ts";

describe("readPath(text, root)", () => {
  it("resolves `.` and `..`, and relative paths from the root", () => {
    expect(readPath("src/./lib/../a.ts", "/workspace")).to.deep.equal({
      plain: "/workspace/src/a.ts",
      inside: true,
      odd: false,
    });
    expect(readPath("/workspace/", "/workspace/")).to.deep.equal({ plain: "/workspace", inside: true, odd: false });
    expect(readPath("../etc/passwd", "/workspace")).to.deep.equal({ plain: "/etc/passwd", inside: false, odd: false });
  });

  it("takes no folder for the root whose name begins like it", () => {
    expect(readPath("/workspace-evil/a", "/workspace")).to.include({ inside: false, odd: false });
  });

  it("is inside nothing without a root, and cannot resolve a relative path then", () => {
    expect(readPath("/etc/../tmp/a")).to.deep.equal({ plain: "/tmp/a", inside: false, odd: false });
    expect(readPath("a")).to.deep.equal({ plain: "a", inside: false, odd: true });
  });

  it("returns an odd path as it came", () => {
    for (const text of ["a/%2e%2e/b", "/Workspace/a", "/workspace/../workspace/a", "~/a", "a\\b", "a\0b", "a//b", ""]) {
      expect(readPath(text, "/workspace"), text).to.deep.equal({ plain: text, inside: false, odd: true });
    }
  });

  it("resolves the escapes of a `file:` URL once", () => {
    expect(readPath("file:///workspace/my%20file", "/workspace").plain).to.equal("/workspace/my file");
    expect(readPath("file:///workspace/%252e%252e", "/workspace").odd).to.equal(true);
  });

  it("is certain of nothing where the root is not an absolute, plain path", () => {
    for (const root of ["workspace", "C:\\workspace", "/work$HOME", ""]) {
      expect(readPath("/workspace/a", root), root).to.include({ inside: false, odd: true });
    }
  });

  it("has `/` as a root of everything", () => {
    expect(readPath("/etc/passwd", "/")).to.deep.equal({ plain: "/etc/passwd", inside: true, odd: false });
  });
});
