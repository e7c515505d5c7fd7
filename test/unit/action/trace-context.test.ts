import { expect } from "chai";
import { readTraceContext, traceparentOf } from "../../../core/action/trace.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";
const plain = `00-${traceId}-${spanId}-01`;

describe("readTraceContext(traceparent, tracestate)", () => {
  it("reads what W3C Trace Context writes, and writes it again", () => {
    const context = readTraceContext(plain);
    expect(context).to.deep.equal({ traceId, spanId, sampled: true });
    expect(context && traceparentOf(context)).to.equal(plain);
    const unsampled = readTraceContext(`00-${traceId}-${spanId}-00`);
    expect(unsampled && traceparentOf(unsampled)).to.equal(`00-${traceId}-${spanId}-00`);
  });

  it("reads of later versions and flags what it knows", () => {
    expect(readTraceContext(`cc-${traceId}-${spanId}-01-what-comes`)).to.deep.equal({ traceId, spanId, sampled: true });
    expect(readTraceContext(`00-${traceId}-${spanId}-ff`)?.sampled).to.equal(true);
    expect(readTraceContext(`00-${traceId}-${spanId}-fe`)?.sampled).to.equal(false);
  });

  for (const [what, text] of Object.entries({
    "no text": undefined,
    "a number": 7,
    "an empty text": "",
    "a version that cannot be": `ff-${traceId}-${spanId}-01`,
    "more than version 00 has": `${plain}-00`,
    "upper case": plain.toUpperCase(),
    "no trace": `00-${"0".repeat(32)}-${spanId}-01`,
    "no span": `00-${traceId}-${"0".repeat(16)}-01`,
    "too few digits": `00-${traceId.slice(1)}-${spanId}-01`,
    "a line break": `${plain}\r\nx: y`,
    "a line break in what comes after a later version": `cc-${traceId}-${spanId}-01-\n`,
    "space around it": ` ${plain} `,
    "a later version without end": `cc-${traceId}-${spanId}-01-${"x".repeat(300)}`,
  })) {
    it(`reads nothing of ${what}`, () => {
      expect(readTraceContext(text)).to.equal(undefined);
    });
  }
});
