import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { escapeInvisible, FaultList, formatFault, quoteInput } from "../../../core/config/fault.ts";

/** What the list throws, line by line. */
function linesOf(faults: FaultList): string[] {
  try {
    return faults.throwAll();
  } catch (error) {
    if (!(error instanceof GatewayError && error.code === "CONFIG_INVALID")) throw error;
    return (error.detail ?? "").split("\n");
  }
}

describe("FaultList", () => {
  it("orders faults by line, then by column, those of the whole file first", () => {
    const faults = new FaultList("f");
    faults.add("d", "last", { file: "f", line: 10, column: 1 });
    faults.add("c", "third", { file: "f", line: 2, column: 10 });
    faults.add("b", "second", { file: "f", line: 2, column: 9 });
    faults.add("", "first");
    expect(linesOf(faults)).to.deep.equal(["f: first", "f:2:9: b: second", "f:2:10: c: third", "f:10:1: d: last"]);
  });

  it("finds the place of the nearest ancestor it knows", () => {
    const faults = new FaultList("f");
    faults.mark("", { file: "f", line: 1, column: 1 });
    faults.mark("keys[0]", { file: "f", line: 3, column: 5 });
    faults.add("keys[0].id", "a");
    faults.add("keys[1].id", "b");
    expect(linesOf(faults)).to.deep.equal(["f:1:1: keys[1].id: b", "f:3:5: keys[0].id: a"]);
  });

  it("is empty until there is a fault", () => {
    const faults = new FaultList("f");
    expect(faults.isEmpty).to.equal(true);
    faults.add("", "x");
    expect(faults.isEmpty).to.equal(false);
  });
});

describe("formatFault(fault)", () => {
  it("cuts a path of the operator's making at 256 characters, and escapes it", () => {
    const path = `a\n${"x".repeat(300)}`;
    expect(formatFault({ file: "f", line: null, column: null, path, message: "t" })).to.equal(
      `f: a\\u{a}${"x".repeat(254)}: t`,
    );
  });
});

describe("quoteInput(text)", () => {
  it("shows 64 characters and says that there were more", () => {
    expect(quoteInput("x".repeat(64))).to.equal(`\`${"x".repeat(64)}\``);
    expect(quoteInput("x".repeat(65))).to.equal(`\`${"x".repeat(64)}…\``);
  });

  it("escapes what a reader cannot see and what a terminal obeys", () => {
    expect(quoteInput("\u001b[2J`\u200b\u202e\u0085\ud800é\n")).to.equal(
      "`\\u{1b}[2J\\u{60}\\u{200b}\\u{202e}\\u{85}\\u{d800}é\\u{a}`",
    );
  });
});

describe("escapeInvisible(text)", () => {
  it("leaves letters of any script, digits and visible ASCII but the backtick", () => {
    const visible = "Az09 !~ключ漢字é";
    expect(escapeInvisible(visible)).to.equal(visible);
  });
});
