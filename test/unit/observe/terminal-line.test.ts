import { expect } from "chai";
import { terminalLine } from "../../../core/observe/log.ts";

const entry = { level: "info", time: "2026-11-21T04:25:51.467Z" };

describe("terminalLine(json)", () => {
  it("says time of day, level, message and fields on one line", () => {
    const line = terminalLine(JSON.stringify({ ...entry, upstream: "demo", msg: "upstream_connected" }));
    expect(line).to.equal("04:25:51 info  upstream_connected upstream=demo\n");
  });

  it("quotes what holds spaces, and shows other values as JSON", () => {
    const line = terminalLine(JSON.stringify({ ...entry, msg: "m", text: 'a "b"', count: 3, list: [1], none: null }));
    expect(line).to.equal('04:25:51 info  m text="a \\"b\\"" count=3 list=[1] none=null\n');
  });

  it("leaves nothing that a terminal would act on", () => {
    const hostile = "\u001b[31m\u009b2J\u202e\r\nforged";
    const line = terminalLine(
      JSON.stringify({ ...entry, msg: hostile, [hostile]: hostile, whole: "\u001b]0;x\u0007" }),
    );
    expect(line.slice(0, -1)).to.match(/^[\x20-\x7e]*$/);
    expect(line).to.include("\\u{202e}");
  });
});
