import { expect } from "chai";
import { GatewayError } from "../../../../core/action/error.ts";
import type { JsonRpcResponse } from "../../../../core/action/json-rpc.ts";
import { answerOf, answerOfFault } from "../../../../core/gateway/mcp/answer.ts";

describe("answerOf(response)", () => {
  const rows: readonly (readonly [name: string, response: JsonRpcResponse, status: string, output: object])[] = [
    ["a result", { jsonrpc: "2.0", id: 1, result: { text: "raw" } }, "success", { text: "raw" }],
    ["a tool's own error", { jsonrpc: "2.0", id: 1, result: { isError: true } }, "error", { isError: true }],
    ["an error", { jsonrpc: "2.0", id: 1, error: { code: 5, message: "raw" } }, "error", { code: 5, message: "raw" }],
  ];
  for (const [name, response, status, output] of rows) {
    it(`makes the reply to ${name} of the output it is given`, () => {
      const answer = answerOf(response);
      expect(answer).to.deep.include({ status, output });
      const judged = { ...output, message: "judged" };
      expect(answer.makeReply(judged, [])).to.deep.equal({ ["result" in response ? "result" : "error"]: judged });
    });
  }
});

describe("answerOfFault(fault)", () => {
  const fault = new GatewayError("UPSTREAM_UNAVAILABLE", "`ann@example.org`", { data: { who: "ann@example.org" } });

  it("is the error itself where its text is left alone", () => {
    const { output, makeReply } = answerOfFault(fault);
    expect(output).to.deep.equal({ code: fault.row.jsonRpc, message: fault.message });
    expect(makeReply(output, [])).to.equal(fault);
  });

  it("keeps the constant part alone where its text is redacted", () => {
    const { output, makeReply } = answerOfFault(fault);
    const reply = makeReply({ ...(output as object), message: "upstream: `[email]`" }, []);
    expect(reply).to.include({ code: fault.code, message: fault.row.text, data: undefined, cause: undefined });
  });
});
