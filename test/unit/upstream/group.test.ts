import { expect } from "chai";
import type { JsonRpcNotification } from "../../../core/action/json-rpc.ts";
import type { UpstreamSettings } from "../../../core/config/gateway-config.ts";
import { call, closeAll, fault, hostile, openFleet, openGroup, scope, textOf, until } from "./fixture.ts";

const object = { type: "object" };
const tool = (name: string, more: object = {}): object => ({ name, inputSchema: object, ...more });

/** A server that lists these tools. */
function listing(
  tools: readonly object[],
  overrides: Partial<UpstreamSettings> = {},
  start = "",
): ReturnType<typeof hostile> {
  return hostile(start, overrides, { TOOLS: JSON.stringify(tools) });
}

describe("UpstreamGroup", () => {
  afterEach(closeAll);

  describe("tools()", () => {
    it("shows the union in configuration order, under prefixed names, with digest and capability", async () => {
      const annotations = { destructiveHint: true };
      const { fleet } = openFleet([
        listing([tool("read_a"), tool("drop", { annotations })], {
          name: "a",
          capabilities: { "read_*": "read", drop: "write" },
        }),
        listing([tool("read_a")], { name: "b", toolPrefix: "b." }),
      ]);
      const tools = await fleet.group(scope()).tools();
      expect(
        tools.map(({ exposedName, name, upstream, capability }) => [exposedName, name, upstream, capability]),
      ).to.deep.equal([
        ["read_a", "read_a", "a", "read"],
        ["drop", "drop", "a", "write"],
        ["b.read_a", "read_a", "b", "execute"],
      ]);
      expect(tools[2]?.definition).to.deep.equal({ name: "b.read_a", inputSchema: object });
      expect(tools[2]?.digest).to.equal(tools[0]?.digest);
      expect(tools[0]?.digest).to.equal("sha256:af44cebd2c22a742e00907a933398147eec2abef50889684ea6fd9bbe50d7a28");
      expect(tools[1]?.annotations).to.deep.equal(annotations);
    });

    it("takes the exact name before a glob and the longer glob before the shorter", async () => {
      const capabilities = { "*": "execute", "read_*": "write", "read_x*": "network", read_x: "read" } as const;
      const { group } = openGroup(
        listing(
          ["other", "read_a", "read_xy", "read_x"].map((name) => tool(name)),
          { capabilities },
        ),
      );
      expect((await group.tools()).map(({ capability }) => capability)).to.deep.equal([
        "execute",
        "write",
        "network",
        "read",
      ]);
    });

    it("withholds from the later upstream a name that two claim, and says so", async () => {
      const { fleet, events } = openFleet([
        listing([tool("same")], { name: "a" }),
        listing([tool("same"), tool("own")], { name: "b" }),
      ]);
      const group = fleet.group(scope());
      expect((await group.tools()).map(({ exposedName, upstream }) => [exposedName, upstream])).to.deep.equal([
        ["same", "a"],
        ["own", "b"],
      ]);
      const withheld = { upstream: "b", name: "same", reason: "the name belongs to upstream `a`" };
      expect(group.withheld()).to.deep.equal([withheld]);
      expect(events).to.deep.include({ kind: "upstream_item_withheld", ...withheld });
    });

    const badName = "the name is not 1 to 128 letters, digits, `_`, `-` or `.`";
    const hidden: Readonly<Record<string, readonly [object, string]>> = {
      "a name with a space": [tool("read file"), badName],
      "a name like a method": [tool("resources/read"), badName],
      "a homoglyph": [tool("reаd_file"), badName],
      "129 characters": [tool("x".repeat(129)), badName],
      "an empty name": [tool(""), badName],
      "no name": [{ inputSchema: object }, badName],
      "no schema": [{ name: "x" }, "the tool has no input schema"],
      "a remote reference": [
        { name: "x", inputSchema: { $ref: "http://evil.example/" } },
        "the schema refers to another document",
      ],
      "a remote reference in its output": [
        tool("x", { outputSchema: { $ref: "http://evil.example/" } }),
        "the schema refers to another document",
      ],
      "a circle": [{ name: "x", inputSchema: { $ref: "#" } }, "the schema has a reference that leads back to itself"],
    };
    for (const [name, [definition, reason]] of Object.entries(hidden)) {
      it(`withholds ${name}, and shows the others`, async () => {
        const { group } = openGroup(listing([definition, tool("good")]));
        expect((await group.tools()).map((one) => one.name)).to.deep.equal(["good"]);
        expect(group.withheld().map((one) => one.reason)).to.deep.equal([reason]);
      });
    }

    it("withholds what the prefix makes too long, and what is listed twice", async () => {
      const { group } = openGroup(listing([tool("x".repeat(127)), tool("a"), tool("a")], { toolPrefix: "p." }));
      expect((await group.tools()).map(({ exposedName }) => exposedName)).to.deep.equal(["p.a"]);
      expect(group.withheld().map(({ name, reason }) => `${name.slice(0, 3)}: ${reason}`)).to.deep.equal([
        `xxx: ${badName}`,
        "p.a: the name is listed twice",
      ]);
    });

    it("withholds a definition of more than 1 Mi characters", async () => {
      const { fleet } = openFleet(
        [hostile("", {}, { TOOLS: JSON.stringify([tool("good")]), BIG_TOOL: "1048576" })],
        4_000_000,
      );
      const group = fleet.group(scope());
      expect((await group.tools()).map(({ name }) => name)).to.deep.equal(["good"]);
      expect(group.withheld()).to.deep.equal([
        { upstream: "up", name: "big", reason: "the definition is longer than 1048576 characters" },
      ]);
    });

    for (const [start, reason] of [
      ["endless-pages", "invalid response from upstream: `tools/list`: expected at most 100 pages"],
      ["same-cursor", "invalid response from upstream: `tools/list`: the same cursor came twice"],
      ["no-list", "invalid response from upstream: expected `tools` to be a list of objects"],
    ] as const) {
      it(`leaves out an upstream with ${start}, and says why`, async () => {
        const { fleet, events } = openFleet([hostile(start, { name: "a" }), listing([tool("good")], { name: "b" })]);
        expect((await fleet.group(scope()).tools()).map(({ name }) => name)).to.deep.equal(["good"]);
        expect(events).to.deep.include({ kind: "upstream_failed", upstream: "a", reason });
      });
    }

    it("leaves out an upstream that is down", async () => {
      const { fleet } = openFleet([
        { ...hostile("", { name: "a" }), command: "/no/such" },
        listing([tool("good")], { name: "b" }),
      ]);
      const group = fleet.group(scope());
      expect((await group.tools()).map(({ name }) => name)).to.deep.equal(["good"]);
      expect((await group.open()).map(({ upstream }) => upstream)).to.deep.equal(["b"]);
      expect(fleet.health().map(({ state }) => state)).to.deep.equal(["down", "up"]);
    });

    it("lets nobody wait twice for an upstream that hangs", async () => {
      const { fleet, events } = openFleet([
        hostile("hang", { name: "a", startTimeoutMs: 500, protocol: "legacy" }),
        listing([tool("good")], { name: "b" }),
      ]);
      const group = fleet.group(scope());
      expect((await group.tools()).map(({ name }) => name)).to.deep.equal(["good"]);
      const started = (): number =>
        events.filter((event) => event.kind === "upstream_output_logged" && event.upstream === "a").length;
      const before = started();
      expect((await group.open()).map(({ upstream }) => upstream)).to.deep.equal(["b"]);
      expect((await fleet.group(scope()).open()).map(({ upstream }) => upstream)).to.deep.equal(["b"]);
      expect(await group.tool("good")).to.deep.include({ upstream: "b" });
      await group.tools();
      expect(started()).to.equal(before);
    });

    it("keeps the last good list of an upstream that fails later", async () => {
      const { group } = openGroup(listing([tool("kept")], {}, "list-once"));
      expect((await group.tools()).map(({ name }) => name)).to.deep.equal(["kept"]);
      await call(group, "change");
      expect((await group.tools()).map(({ name }) => name)).to.deep.equal(["kept"]);
    });
  });

  describe("tool(exposedName)", () => {
    it("answers at once for a known tool", async () => {
      const { group } = openGroup(listing([tool("known")]));
      await group.tools();
      expect(group.tool("known")).to.deep.include({ name: "known" });
    });

    it("answers at once for a known tool while another upstream is being started again", async () => {
      const { fleet } = openFleet([listing([tool("other")]), listing([tool("known")], { name: "b" })]);
      const group = fleet.group(scope());
      await group.tools();
      expect(await fault(call(group, "die"))).to.match(/^UPSTREAM_UNAVAILABLE /);
      expect(group.tool("known")).to.deep.include({ upstream: "b" });
      expect(await group.tool("other")).to.deep.include({ upstream: "up" });
    });

    it("matches exactly", async () => {
      const { group } = openGroup(listing([tool("read_file")]));
      for (const name of ["Read_file", "read_file ", "read_file\0", "READ_FILE", "read_filé"]) {
        expect(await group.tool(name)).to.equal(undefined);
      }
    });

    it("asks for a tool it does not know, once a second at most", async () => {
      const { group } = openGroup(listing([tool("known")]));
      await group.tools();
      for (let count = 0; count < 20; count++) expect(await group.tool("unknown")).to.equal(undefined);
      expect(textOf(await call(group, "lists"))).to.equal("1");
    });

    it("is refused as busy where its list was never read for want of a connection, and nobody else's place is taken [S77]", async () => {
      const shares = { keySharePercent: 25, tenantSharePercent: 50 };
      const { fleet } = openFleet([listing([tool("known")], { maxConnections: 4 })], 1_000_000, shares);
      const groupOf = (id: string, tenant = "acme") => fleet.group(scope({ holder: { id, tenant } }));
      const first = groupOf("a");
      await first.tools();
      const second = groupOf("a");
      const busy =
        "UPSTREAM_BUSY upstream has no free connection: expected at most 1 connections to `up` with one key; try again in 1 s";
      expect(await fault(Promise.resolve(second.tool("known")))).to.equal(busy);
      expect(await fault(second.open())).to.equal(busy);
      expect(await groupOf("b").tool("known")).to.deep.include({ name: "known" });
      expect(await groupOf("d", "other").tool("known")).to.deep.include({ name: "known" });
      // Nothing uses the first one's: it makes room for another group of its own key.
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      expect(await second.tool("known")).to.deep.include({ name: "known" });
      expect(fleet.health()[0]?.connections).to.equal(3);
    });

    it("waits for the new list once the upstream said that it changed", async () => {
      const { group } = openGroup(listing([tool("known")]));
      await group.tools();
      await call(group, "change");
      expect(await group.tool("added")).to.deep.include({ name: "added" });
      expect((await group.tools()).map(({ name }) => name)).to.deep.equal(["known", "added"]);
    });
  });

  describe("onNotification(handler)", () => {
    it("hands over what upstreams say between requests, until it is stopped", async () => {
      const { group } = openGroup(listing([]));
      const heard: JsonRpcNotification[] = [];
      const stop = group.onNotification((notification) => heard.push(notification));
      await call(group, "change");
      expect(heard).to.deep.equal([{ jsonrpc: "2.0", method: "notifications/tools/list_changed" }]);
      stop();
      await call(group, "change");
      expect(heard).to.have.length(1);
    });
  });

  it("throws TypeError for an upstream that is not configured", () => {
    const { group } = openGroup(listing([]));
    expect(() => group.connection("other")).to.throw(TypeError, "connection: no upstream `other`");
  });
});

describe("UpstreamFleet", () => {
  afterEach(closeAll);

  it("gives each session a connection of its own, and one to all where it is shared", async () => {
    const { fleet } = openFleet([hostile("", { name: "own" }), hostile("", { name: "common", connection: "shared" })]);
    await Promise.all([
      fleet.group(scope()).open(),
      fleet.group(scope()).open(),
      fleet.shared.legacy.open(),
      fleet.shared.modern.open(),
    ]);
    expect(fleet.health().map(({ name, connections }) => [name, connections])).to.deep.equal([
      ["own", 3],
      ["common", 1],
    ]);
  });

  it("spreads over a shared connection only what concerns all", async () => {
    const heard: string[][] = [[], []];
    const { fleet } = openFleet([hostile("", { connection: "shared" })]);
    const groups = heard.map((list) =>
      fleet.group(
        scope({
          listener: {
            onNotification: (_, { method }) => list.push(method),
            onRequest: () => Promise.reject(),
            onClose: (_, reason) => list.push(reason),
          },
        }),
      ),
    );
    await call(groups[0] as (typeof groups)[number], "change");
    expect(heard).to.deep.equal([["notifications/tools/list_changed"], ["notifications/tools/list_changed"]]);
    await (groups[1] as (typeof groups)[number]).close();
    await call(groups[0] as (typeof groups)[number], "change");
    expect(heard.map(({ length }) => length)).to.deep.equal([2, 1]);
  });

  it("refuses what an upstream asks of a client that is not there", async () => {
    const { fleet } = openFleet([hostile("", { connection: "shared" })]);
    const group = fleet.shared.legacy;
    await call(group, "ask");
    const refusal =
      '{"jsonrpc":"2.0","id":"ask-1","error":{"code":-32601,"message":"method not found: `roots/list`: this connection has no client behind it"}}';
    expect(JSON.parse(textOf(await call(group, "received")))).to.include(refusal);
  });

  it("starts a shared process again without being asked", async () => {
    const { fleet } = openFleet([hostile("", { connection: "shared" })]);
    await fault(call(fleet.shared.legacy, "die"));
    expect(fleet.health()[0]?.connections).to.equal(0);
    await until(() => fleet.health()[0]?.connections === 1);
  });

  it("says what it knows of an upstream", async () => {
    const { fleet } = openFleet([hostile()]);
    expect(fleet.health()).to.deep.equal([
      { name: "up", transport: "stdio", state: "idle", connections: 0, failures: 0 },
    ]);
    const group = fleet.group(scope());
    await fault(call(group, "die"));
    expect(fleet.health()).to.deep.equal([
      {
        name: "up",
        transport: "stdio",
        state: "down",
        connections: 0,
        failures: 0,
        reason: "upstream unavailable: the process ended (exit code 7)",
      },
    ]);
  });

  it("leaves no process behind that was still starting", async () => {
    const { fleet, events } = openFleet([hostile("hang", { startTimeoutMs: 600_000, protocol: "legacy" })]);
    const opening = fault(call(fleet.group(scope()), "echo"));
    await until(() => events.some(({ kind }) => kind === "upstream_output_logged"));
    await fleet.close();
    expect(await opening).to.equal("UPSTREAM_UNAVAILABLE upstream unavailable: the connection was closed");
  });

  for (const connection of ["session", "shared"] as const) {
    it(`gives up a ${connection} connection that is being opened, and tries no other era, when it is closed`, async () => {
      const { fleet, events } = openFleet([hostile("hang", { startTimeoutMs: 600_000, connection })]);
      const opening = fault(call(fleet.group(scope({ era: "modern" })), "echo"));
      const started = (): number =>
        events.filter((event) => event.kind === "upstream_output_logged" && event.line === "second line").length;
      await until(() => started() === 1);
      await fleet.close();
      expect(await opening).to.equal("STOPPING the gateway is stopping");
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(started()).to.equal(1);
    });
  }

  it("opens nothing once it is closed", async () => {
    const { fleet } = openFleet([hostile()]);
    const group = fleet.group(scope());
    await fleet.close();
    expect(await fault(call(group, "echo"))).to.equal("STOPPING the gateway is stopping");
  });

  it("refuses two upstreams of one name", () => {
    expect(() => openFleet([hostile(), hostile()])).to.throw(TypeError, "two upstreams have the same name");
  });
});

describe("which era is spoken", () => {
  afterEach(closeAll);

  const table: readonly (readonly [string, "legacy" | "modern", "auto" | "legacy" | "modern", string])[] = [
    ["", "legacy", "auto", "legacy"],
    ["", "modern", "auto", "legacy"],
    ["modern", "legacy", "auto", "modern"],
    ["modern", "modern", "modern", "modern"],
    ["exit-on-discover", "modern", "auto", "legacy"],
  ];
  for (const [start, era, protocol, expected] of table) {
    it(`${expected} with a ${start === "" ? "legacy" : start} server for a ${era} client and protocol ${protocol}`, async () => {
      const { group } = openGroup(hostile(start, { protocol }), { era });
      expect((await group.connection("up")).server.era).to.equal(expected);
      const response = await call(group, "echo");
      expect("result" in response && response.result.resultType).to.equal(era === "modern" ? "complete" : undefined);
    });
  }

  it("legacy with a process that says nothing to a request it does not know", async () => {
    const { group } = openGroup(hostile("silent-on-discover", { startTimeoutMs: 1_000 }), { era: "modern" });
    expect((await group.connection("up")).server.era).to.equal("legacy");
  });

  it("refuses a revision nobody knows", async () => {
    const { group } = openGroup(hostile("future"));
    expect(await fault(call(group, "echo"))).to.match(
      /^UPSTREAM_INVALID .*`server\/discover` was refused with error -32601$/,
    );
  });

  it("refuses the other era where one is configured", async () => {
    const { group } = openGroup(hostile("modern", { protocol: "legacy" }));
    expect(await fault(call(group, "echo"))).to.equal(
      "UPSTREAM_INVALID invalid response from upstream: `initialize` was refused with error -32022",
    );
  });

  it("refuses a legacy client a result that asks for input", async () => {
    const { group } = openGroup(hostile("modern"));
    expect(await fault(call(group, "input_required"))).to.match(/^CLIENT_CAPABILITY_MISSING /);
  });
});
