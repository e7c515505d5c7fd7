import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { headKey, headRange, readHead, type SessionHead, sessionOfHead } from "../../../core/session/session-entry.ts";

const head: SessionHead = {
  principal: "principal-v1-a",
  risk: [12.5, 1_000],
  actions: 3,
  reviews: 1,
  last: 1_000,
  taints: [{ name: "untrusted", target: "web", tool: "fetch", action: "a", at: 900 }],
  tools: ["0123456789abcdef"],
  tool_count: 1,
};

describe("readHead(session, text)", () => {
  it("reads what was written", () => {
    expect(readHead("s", JSON.stringify(head))).to.deep.equal(head);
  });

  const damaged: readonly (readonly [string, unknown])[] = [
    ["no object", []],
    ["no principal", { ...head, principal: undefined }],
    ["a risk without time", { ...head, risk: [1] }],
    ["a negative risk", { ...head, risk: [-1, 0] }],
    ["a count that is no number", { ...head, actions: "3" }],
    ["a taint without source", { ...head, taints: [{ name: "untrusted" }] }],
    ["a tool that is no text", { ...head, tools: [1] }],
    ["no count of tools", { ...head, tool_count: undefined }],
  ];

  for (const [name, value] of damaged) {
    it(`throws SESSION_DAMAGED for ${name}`, () => expectDamaged(JSON.stringify(value)));
  }

  it("throws SESSION_DAMAGED for a text that is cut short, and for a number beyond all", () => {
    expectDamaged(JSON.stringify(head).slice(0, -1));
    expectDamaged(JSON.stringify(head).replace("12.5", "1e999"));
  });
});

describe("headKey(tenant, session)", () => {
  it("lies in the range of its tenant, and names its session", () => {
    const { gte, lt } = headRange("acme/x");
    for (const session of ["s", "a/b", "ü%", "s "]) {
      const key = headKey("acme/x", session);
      expect(key > gte && key < lt).to.equal(true);
      expect(sessionOfHead(key)).to.equal(session);
    }
  });
});

function expectDamaged(text: string): void {
  expect(() => readHead("s", text))
    .to.throw(GatewayError, "the stored state of the session is damaged: session `s`; an operator can reset it")
    .that.includes({ code: "SESSION_DAMAGED" });
}
