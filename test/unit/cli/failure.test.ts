import { expect } from "chai";
import { usageFailure, wantsJson } from "../../../core/cli/failure.ts";

describe("wantsJson(words)", () => {
  it("is true where a word is --json, wherever it stands", () => {
    expect(wantsJson(["approvals", "list", "--json"])).to.equal(true);
    expect(wantsJson(["--json", "approvals", "list"])).to.equal(true);
    expect(wantsJson(["approvals", "list"])).to.equal(false);
    expect(wantsJson(["approvals", "list", "--jsonl"])).to.equal(false);
  });

  it("is not for a word behind `--`, which is no option", () => {
    expect(wantsJson(["pack", "lint", "--", "--json"])).to.equal(false);
  });
});

describe("usageFailure(text, hint)", () => {
  it("is one line of printable JSON, whatever was typed", () => {
    const line = usageFailure("error: unknown command '\u001b[2J\u202ex'\n(Did you mean y?)\n", "(help)");
    expect(line).to.match(/^[ -~]+\n$/);
    expect(JSON.parse(line)).to.deep.equal({
      error: { code: "USAGE", message: "unknown command '\u001b[2J\u202ex'\n(Did you mean y?) (help)" },
    });
  });
});
