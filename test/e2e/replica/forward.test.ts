import { once } from "node:events";
import { expect } from "chai";
import { WebSocket } from "ws";
import { ReplicaSite } from "../../support/replica-site.ts";
import { siteKey } from "../../support/site.ts";

describe("a connection that another replica forwards", () => {
  let site: ReplicaSite;

  before(async () => {
    site = await ReplicaSite.start(3_000, 2);
  });

  after(() => site.stop());

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
