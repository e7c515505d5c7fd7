import { expect } from "chai";
import type { JsonRpcNotification } from "../../../core/action/json-rpc.ts";
import type { UpstreamGroup } from "../../../core/upstream/group.ts";
import { call, closeAll, fault, hostile, listener, openFleet, openGroup, scope, textOf, until } from "./fixture.ts";

const uri = "note://1";

async function subscribe(group: UpstreamGroup, wanted: boolean): Promise<void> {
  const connection = await group.connection("up");
  const method = wanted ? "resources/subscribe" : "resources/unsubscribe";
  expect(await connection.request({ method, params: { uri } })).to.deep.include({ result: {} });
}

async function received(group: UpstreamGroup, method: string): Promise<number> {
  const all: string[] = JSON.parse(textOf(await call(group, "received")));
  return all.filter((one) => one === method).length;
}

describe("a legacy client of a stateless upstream", () => {
  afterEach(closeAll);

  it("subscribes to resources as it always did, by streams it does not see", async () => {
    const notes: JsonRpcNotification[] = [];
    const { group } = openGroup(hostile("modern"), {
      listener: listener({ onNotification: (_, note) => notes.push(note) }),
    });
    await subscribe(group, true);
    await call(group, "update", { uri });
    await until(() => notes.length > 0);
    expect(notes).to.deep.equal([{ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri } }]);
    await subscribe(group, false);
    expect(await received(group, "subscriptions/listen")).to.equal(1);
    expect(await received(group, "notifications/cancelled")).to.equal(1);
  });

  it("sets a log level that goes with each request", async () => {
    const { group } = openGroup(hostile("modern"));
    const connection = await group.connection("up");
    await connection.request({ method: "logging/setLevel", params: { level: "warning" } });
    const { _meta } = JSON.parse(textOf(await call(group, "echo")));
    expect(_meta["io.modelcontextprotocol/logLevel"]).to.equal("warning");
    expect(await received(group, "logging/setLevel")).to.equal(0);
  });

  it("is told when a subscription is refused", async () => {
    const { group } = openGroup(hostile("modern"));
    const connection = await group.connection("up");
    for (let count = 0; count < 1_000; count++) {
      void connection
        .request({ method: "resources/subscribe", params: { uri: `note://${count}` } })
        .catch(() => undefined);
    }
    expect(await fault(connection.request({ method: "resources/subscribe", params: { uri } }))).to.equal(
      "INVALID_PARAMS invalid params: expected at most 1000 subscriptions",
    );
  });
});

describe("subscriptions on a shared connection", () => {
  afterEach(closeAll);

  it("tell each group of its own resources, and end with the last one", async () => {
    const { fleet } = openFleet([hostile("", { connection: "shared" })]);
    const heard: string[][] = [[], []];
    const [one, two] = heard.map((list) =>
      fleet.group(scope({ listener: listener({ onNotification: (_, { method }) => list.push(method) }) })),
    ) as [UpstreamGroup, UpstreamGroup];
    await two.open();
    await subscribe(one, true);
    await call(one, "update", { uri });
    expect(heard).to.deep.equal([["notifications/resources/updated"], []]);
    await subscribe(two, true);
    await subscribe(one, false);
    expect(await received(two, "resources/unsubscribe")).to.equal(0);
    await call(one, "update", { uri });
    expect(heard.map(({ length }) => length)).to.deep.equal([1, 1]);
    await two.close();
    expect(await received(one, "resources/unsubscribe")).to.equal(1);
  });
});
