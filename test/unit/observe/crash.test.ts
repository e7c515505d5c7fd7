import { expect } from "chai";
import { crashOf } from "../../../core/observe/log.ts";

const secret = "sk-live-canary";

describe("crashOf(cause)", () => {
  it("says what kind of error it was and where it was thrown", () => {
    const { error, code, stack } = crashOf(Object.assign(new RangeError("too much"), { code: "ERR_OUT_OF_RANGE" }));
    expect([error, code]).to.deep.equal(["RangeError", "ERR_OUT_OF_RANGE"]);
    expect(stack[0]).to.match(/^at .*crash\.test\.js:\d+:\d+\)?$/);
    expect(stack.length).to.be.within(1, 16);
  });

  const forged = new Error(`a\n    at ${secret} (file:///a.js:1:1)`);
  const renamed = new Error("first");
  renamed.message = secret;
  const causes: readonly (readonly [string, unknown])[] = [
    ["a message", new Error(secret)],
    ["a message that looks like a stack", forged],
    ["a message that was changed", renamed],
    ["a name", Object.assign(new Error("a"), { name: secret })],
    ["a name of more lines", Object.assign(new Error("a"), { name: `${secret}\n    at ${secret}` })],
    ["a code", Object.assign(new Error("a"), { code: secret })],
    ["a cause", new Error("a", { cause: secret })],
    ["a member", Object.assign(new Error("a"), { input: secret })],
    ["no error", secret],
    ["an object", { message: secret, stack: secret }],
    ["a stack of its own", Object.assign(new Error("a"), { stack: `${secret}: a\n${secret}` })],
  ];
  for (const [what, cause] of causes) {
    it(`says nothing of ${what} [S66]`, () => {
      expect(JSON.stringify(crashOf(cause))).to.not.include(secret);
    });
  }
});
