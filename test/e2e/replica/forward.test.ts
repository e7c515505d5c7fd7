import { once } from "node:events";
import { expect } from "chai";
import { WebSocket } from "ws";
import { Agent } from "../../support/agent.ts";
import { rejection } from "../../support/ledger-world.ts";
import { eventually, ReplicaSite } from "../../support/replica-site.ts";
import { siteFiles, siteKey } from "../../support/site.ts";

describe("a connection that another replica forwards", () => {
  let site: ReplicaSite;

  before(async () => {
    site = await ReplicaSite.start(3_000, 2);
  });

  after(() => site.stop());

  it("is answered where that replica is stopped meanwhile, and one that waits for nothing ends with it [S86]", async () => {
    const at = 1 - site.group.owner();
    const idle = new Agent(site.url(at), siteKey, "idle");
    expect((await idle.call("echo")).status).to.equal(200);
    const calling = site.call(site.url(at), "in-flight", { wait_ms: 3_000 });
    await eventually("the call to be dispatched", async () => (await site.reached()).includes("in-flight"));
    const stopping = site.group.member(at).stop();
    await eventually("the port to be closed", async () => (await site.call(site.url(at), "new")).end === "none");
    expect((await calling).end).to.equal("answered");
    expect(await stopping).to.equal(0);
    await idle.hangUp();
    await site.group.start(at);
    await site.expectSettled([await calling], 1 - at);
  });

  it("is taken by no replica that could not serve it: one whose pack cannot be loaded does not start", async () => {
    const files = { ...siteFiles(), "packs/open/rules/delete.yaml": "rules: [{ id: open.delete }]\n" };
    const refused = await rejection(site.group.start(2, { files }));
    expect(refused.message).to.include("\nrules/delete.yaml:1:9: rules[0].title: expected");
  });

  it("is told why the owner ends it, also while its client still sends", async () => {
    const url = site.url(1 - site.group.owner()).replace("http", "ws");
    for (let turn = 0; turn < 5; turn++) {
      const client = new WebSocket(`${url}/v1/ws`, { headers: { "x-api-key": siteKey } });
      client.on("error", () => undefined);
      await once(client, "open");
      client.send(`{"type":"ping","id":"${"x".repeat(8_000_000)}"}`);
      const [code] = await once(client, "close");
      expect(code).to.equal(1009);
    }
  });
});
