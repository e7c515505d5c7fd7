import { expect } from "chai";
import { operations } from "../../support/route-table.ts";
import { send, type WireResponse } from "../../support/wire.ts";
import { keys, openWorld, type World } from "../wire/world.ts";

const few = "limits: { admin_requests_per_minute: 30, admin_unauthenticated_per_minute: 30 }";

describe("how often the admin port may be asked", () => {
  let world: World;
  afterEach(() => world.stop());

  function ask(key: string | null, path = "/admin/v1/policies"): Promise<WireResponse> {
    return send(world.gateway.adminUrl, { target: path, headers: key === null ? [] : [["x-api-key", key]] });
  }

  /** The statuses of so many requests, one after the other. */
  async function statuses(count: number, key: string | null): Promise<readonly number[]> {
    const all: number[] = [];
    for (let turn = 0; turn < count; turn++) all.push((await ask(key)).status);
    return all;
  }

  async function limited(by: "key" | "address"): Promise<number> {
    const { body } = await send(world.gateway.metricsUrl, { target: "/metrics" });
    return Number(new RegExp(`^gateway_admin_rate_limited_total\\{by="${by}"\\} (\\d+)$`, "m").exec(body)?.[1]);
  }

  it("is so often with one key: then it hears how long to wait, and others are served", async () => {
    world = await openWorld(few);
    const answers = await statuses(40, keys.viewer);
    expect([answers.slice(0, 30).every((status) => status === 200), answers.at(-1)]).to.deep.equal([true, 429]);
    const refused = await ask(keys.viewer);
    const seconds = Number(refused.headers.get("retry-after"));
    expect([refused.status, refused.headers.get("content-type")]).to.deep.equal([429, "application/problem+json"]);
    expect(JSON.parse(refused.body)).to.deep.include({
      code: "RATE_LIMITED",
      detail: `too many requests: expected at most 30 requests a minute with one key; try again in ${seconds} s`,
      data: { reason: "key", retry_after_s: seconds, limit: 30 },
    });
    expect(seconds).to.be.oneOf([1, 2]);
    expect((await ask(keys.operator)).status).to.equal(200);
    expect(await limited("key")).to.be.greaterThan(0);
    expect(await limited("address")).to.equal(0);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
    expect((await ask(keys.viewer)).status).to.equal(200);
  });

  it("is refused to a role that may not, as often as to any other", async () => {
    world = await openWorld(few);
    const path = "/admin/v1/webhooks/dead-letters";
    const answers: number[] = [];
    for (let turn = 0; turn < 40; turn++) answers.push((await ask(keys.viewer, path)).status);
    expect([answers[0], answers.at(-1)]).to.deep.equal([403, 429]);
  });

  it("leaves health and metrics to those who watch it", async () => {
    world = await openWorld(few);
    await statuses(40, keys.viewer);
    for (const path of ["/health", "/metrics"]) {
      const answers = await Promise.all(Array.from({ length: 40 }, () => ask(keys.viewer, path)));
      expect(new Set(answers.map(({ status }) => status)), path).to.deep.equal(new Set([200]));
    }
  });

  for (const [what, key] of [
    ["without a key", null],
    ["with a wrong key", `wrong-${keys.admin}`],
  ] as const) {
    it(`is so often ${what} from one address, and keeps no good key out: a session is stopped from there nonetheless`, async () => {
      world = await openWorld(few);
      const answers = await statuses(40, key);
      expect([answers.slice(0, 30).every((status) => status === 401), answers.at(-1)]).to.deep.equal([true, 429]);
      const refused = await ask(key);
      expect(Number(refused.headers.get("retry-after"))).to.be.oneOf([1, 2]);
      expect(refused.body).to.include("unauthenticated requests a minute").and.not.include("wrong-");
      expect(await limited("address")).to.be.greaterThan(0);
      const killed = await send(world.gateway.adminUrl, {
        method: "POST",
        target: "/admin/v1/kills",
        headers: [
          ["x-api-key", keys.operator],
          ["content-type", "application/json"],
        ],
        body: JSON.stringify({ scope: "tenant" }),
      });
      expect(killed.status).to.equal(200);
    });
  }

  it("is often enough for anyone's work unless configuration says otherwise", async () => {
    world = await openWorld();
    const asked = Object.keys(operations).length * 4;
    expect(new Set(await statuses(asked, keys.viewer))).to.deep.equal(new Set([200]));
    expect(new Set(await statuses(asked, null))).to.deep.equal(new Set([401]));
  });
});
