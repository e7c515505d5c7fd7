import { expect } from "chai";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import { fingerprint } from "../../../core/action/fingerprint.ts";
import { makeAction } from "../../support/action.ts";

const base = makeAction({ arguments: { path: "/a", list: [1, 2], nested: { x: 1 } } });

const changes: Record<string, Partial<ActionEnvelope>> = {
  tenant: { tenant: "other" },
  principal: { principal: { ...base.principal, id: "principal-v1-other" } },
  session: { session: { id: "session-v1-other", transport: "http" } },
  task: { task: "t" },
  protocol: { protocol: "http" },
  tool: { tool: "Read_note" },
  target: { target: "other" },
  capability: { capability: "write" },
  arguments: { arguments: { path: "/a", list: [2, 1], nested: { x: 1 } } },
  "a nested argument": { arguments: { path: "/a", list: [1, 2], nested: { x: 2 } } },
  "the letter case of an argument": { arguments: { path: "/A", list: [1, 2], nested: { x: 1 } } },
  "null for a missing argument": { arguments: { path: "/a", list: [1, 2], nested: { x: 1, y: null } } },
  "a continuation": { continuation: { requestState: "s" } },
};

describe("fingerprint(action)", () => {
  for (const [what, change] of Object.entries(changes)) {
    it(`changes with ${what}`, () => {
      expect(fingerprint(makeAction({ ...base, ...change }))).not.to.equal(fingerprint(base));
    });
  }

  it("stays when only the id, the time, the client or the order of keys changes", () => {
    const same = makeAction({
      ...base,
      id: "other",
      time: "2030-01-01T00:00:00.000Z",
      client: { name: "x", version: "y", address: "z" },
      arguments: { nested: { x: 1 }, list: [1, 2], path: "/a" },
    });
    expect(fingerprint(same)).to.equal(fingerprint(base));
  });

  it("does not let text slide from one field into the next", () => {
    const left = fingerprint(makeAction({ ...base, tool: "a", target: "bc" }));
    expect(left).not.to.equal(fingerprint(makeAction({ ...base, tool: "ab", target: "c" })));
  });

  it("does not let arguments imitate a continuation", () => {
    const carried = makeAction({ ...base, arguments: {}, continuation: { requestState: "s" } });
    expect(fingerprint(carried)).not.to.equal(
      fingerprint(makeAction({ ...base, arguments: [{}, { requestState: "s" }] })),
    );
  });
});
