import { expect } from "chai";
import { call, closeAll, fault, hostile, openFleet, openGroup, scope, textOf } from "./fixture.ts";

describe("what an upstream on a pipe answers", () => {
  afterEach(closeAll);

  const failsAlone: Readonly<Record<string, string | RegExp>> = {
    broken: /^UPSTREAM_INVALID invalid response from upstream: malformed JSON: /,
    duplicate_key: /^UPSTREAM_INVALID invalid response from upstream: malformed JSON: duplicate key `a` at offset \d+$/,
    deep: /^UPSTREAM_INVALID invalid response from upstream: JSON exceeds a bound: expected at most 64 levels/,
    not_an_object:
      /^UPSTREAM_INVALID invalid response from upstream: invalid request: expected a `method`, or a response/,
    both: /^UPSTREAM_INVALID invalid response from upstream: invalid request: expected a `method`, or a response/,
    invalid_utf8: /^UPSTREAM_INVALID invalid response from upstream: malformed JSON: expected UTF-8/,
    huge: /^UPSTREAM_INVALID invalid response from upstream: expected a message of at most 1000000 bytes, got more$/,
  };
  for (const [tool, expected] of Object.entries(failsAlone)) {
    it(`fails the one request where it can be seen whose answer it is: ${tool}`, async () => {
      const { group, events } = openGroup(hostile());
      const other = call(group, "late");
      expect(await fault(call(group, tool))).to.match(expected as RegExp);
      expect(textOf(await other)).to.equal("late");
      expect(events.some(({ kind }) => kind === "upstream_closed")).to.equal(false);
    });
  }

  const endsAll: Readonly<Record<string, RegExp>> = {
    nonsense: /malformed JSON/,
    wrong_id: /expected the id of a request, got an answer to none$/,
    string_id: /expected the id of a request, got an answer to none$/,
    endless: /expected a line end on standard output, got an endless line$/,
    flood: /the upstream floods the gateway with messages$/,
  };
  for (const [tool, expected] of Object.entries(endsAll)) {
    it(`ends the connection where it cannot be seen: ${tool}`, async () => {
      const { group, events } = openGroup(hostile());
      const other = fault(call(group, "hang"));
      expect(await fault(call(group, tool)))
        .to.match(/^UPSTREAM_INVALID /)
        .and.to.match(expected);
      expect(await other).to.match(expected);
      expect(events.filter(({ kind }) => kind === "upstream_closed")).to.have.length(1);
    });
  }

  it("fails the only request in flight for an error without an id", async () => {
    const { group } = openGroup(hostile());
    expect(await call(group, "null_id")).to.deep.equal({
      jsonrpc: "2.0",
      id: null,
      error: { code: -32700, message: "cannot read" },
    });
  });

  it("refuses a batch", async () => {
    const { group } = openGroup(hostile());
    expect(await fault(call(group, "batch"))).to.match(/expected one JSON-RPC message, got a batch$/);
  });

  it("drops an answer that comes after its request timed out", async () => {
    const { group, events } = openGroup(hostile("", { timeoutMs: 100 }));
    expect(await fault(call(group, "late"))).to.equal(
      "UPSTREAM_TIMEOUT upstream did not answer in time: expected an answer to `tools/call` within 100 ms",
    );
    await new Promise((resolve) => setTimeout(resolve, 350));
    expect(textOf(await call(group, "echo"))).to.equal('{"name":"echo","arguments":{}}');
    expect(events.some(({ kind }) => kind === "upstream_closed")).to.equal(false);
  });

  it("keeps memory flat under a flood", async () => {
    const { fleet } = openFleet([hostile()]);
    const before = process.memoryUsage().rss;
    await fault(call(fleet.group(scope()), "flood"));
    expect(process.memoryUsage().rss - before).to.be.lessThan(100 * 1024 * 1024);
  });
});
