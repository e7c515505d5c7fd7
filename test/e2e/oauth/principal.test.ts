import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { tokenPrincipalId } from "../../../core/action/principal.ts";
import { until } from "../../support/event-stream.ts";
import { send } from "../../support/wire.ts";
import { bearer, OauthWorld } from "./world.ts";

const held = { please_review: "before it runs" };

/** What hangs on the key elsewhere hangs on the subject here: however many tokens it gets, it is one. */
describe("the principal of access tokens", () => {
  let world: OauthWorld;
  const idOf = (subject: string, tenant: string = "acme"): string =>
    tokenPrincipalId(tenant, world.server.issuer, subject);

  describe("in a tenant that a claim says", () => {
    before(async () => {
      world = await OauthWorld.start({ oauth: "tenant_claim: org\ntenants: { org-1: acme, org-2: other }" });
    });
    after(() => world.stop());

    it("acts in that tenant, and leaves no trace in another", async () => {
      expect(await world.callWith(await world.token({ org: "org-2", sub: "wanderer" }))).to.equal("result");
      const principals = async (holder: "operator" | "foreign"): Promise<readonly string[]> =>
        (await world.evidence(holder).sessions()).map(({ principal }) => principal);
      expect(await principals("foreign")).to.deep.equal([idOf("wanderer", "other")]);
      expect(await principals("operator")).to.deep.equal([]);
    });

    for (const [what, claims] of [
      ["a tenant that is not listed", { org: "org-3" }],
      ["the name of a tenant in place of the claim's value", { org: "acme" }],
      ["no tenant", {}],
      ["two tenants", { org: ["org-1", "org-2"] }],
    ] as const) {
      it(`is refused with ${what} [S84]`, async () => {
        const refused = await world.refuse(await world.token(claims));
        expect([refused.code, refused.reason]).to.deep.equal(["TOKEN_INVALID", "tenant"]);
      });
    }

    it("reaches neither the sessions nor the approvals of another tenant", async () => {
      const home = await world.token({ org: "org-1" });
      const abroad = await world.token({ org: "org-2" });
      const opened = await initialize(world, home);
      expect(opened.status).to.equal(200);
      const session = [["mcp-session-id", opened.headers.get("mcp-session-id") ?? ""]] as const;
      expect((await world.call([...bearer(abroad), ...session])).status).to.equal(404);
      expect((await world.call([...bearer(home), ...session])).status).to.equal(200);
    });
  });

  describe("under the controls of a key", () => {
    before(async () => {
      const route = "model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }";
      world = await OauthWorld.start({ more: route });
    });
    after(() => world.stop());

    it("keeps a session through a renewed token, which no other subject may use", async () => {
      const opened = await initialize(world, await world.token());
      const session = [["mcp-session-id", opened.headers.get("mcp-session-id") ?? ""]] as const;
      expect((await world.call([...bearer(await world.token()), ...session])).status).to.equal(200);
      expect((await world.call([...bearer(await world.token({ sub: "another" })), ...session])).status).to.equal(404);
      expect((await world.call([["x-api-key", world.keys.agent], ...session])).status).to.equal(404);
    });

    it("is stopped by the kill switch over all of its tokens, alone, and released", async () => {
      const subject = idOf("runaway");
      const token = (): Promise<string> => world.token({ sub: "runaway" });
      expect(await world.callWith(await token())).to.equal("result");
      const kill = { scope: "principal", subject, note: "it ran away" };
      expect((await world.order("foreign", "kills", kill)).status).to.equal(404);
      expect((await world.order("operator", "kills", kill)).status).to.equal(200);
      const before = await world.upstream.calls();
      for (let round = 0; round < 2; round++)
        expect(await world.callWith(await token())).to.contain("principal.killed");
      expect(await world.upstream.calls()).to.deep.equal(before);
      expect(await world.callWith(await world.token())).to.equal("result");
      expect(
        (await world.order("operator", "kills/release", { scope: "principal", subject, reason: "it is tame" })).status,
      ).to.equal(200);
      expect(await world.callWith(await token())).to.equal("result");
    });

    it("can be stopped before it was ever seen", async () => {
      const kill = { scope: "principal", subject: idOf("not-yet-here"), note: "it left the company" };
      expect((await world.order("operator", "kills", kill)).status).to.equal(200);
      expect(await world.callWith(await world.token({ sub: "not-yet-here" }))).to.contain("principal.killed");
      expect((await world.order("operator", "kills", { ...kill, subject: "principal-v1-nobody" })).status).to.equal(
        404,
      );
    });

    it("uses an approval once, with a renewed token, and no other subject does", async () => {
      const asked = await world.callWith(await world.token({ sub: "author" }), held);
      const [, id] = /Approval (apr_[0-9a-f]{32}) is pending/.exec(asked) ?? [];
      expect((await world.order("operator", `approvals/${id}/approve`, {})).status).to.equal(200);
      expect(await world.callWith(await world.token({ sub: "thief" }), held)).to.contain("is pending");
      expect(await world.callWith(await world.token({ sub: "author" }), held)).to.equal("result");
      expect(await world.callWith(await world.token({ sub: "author" }), held)).to.contain("is pending");
    });

    it("asks models as well, as the same principal", async () => {
      const response = await send(world.gateway.url, {
        method: "POST",
        target: "/v1/chat/completions",
        headers: [...bearer(await world.token({ sub: "asker" })), ["content-type", "application/json"]],
        body: JSON.stringify({ model: "mock", messages: [{ role: "user", content: "hello" }] }),
      });
      expect([response.status, JSON.parse(response.body).object]).to.deep.equal([200, "chat.completion"]);
      const principals = (await world.evidence("operator").sessions()).map(({ principal }) => principal);
      expect(principals).to.include(idOf("asker"));
    });

    it("keeps its session when packs and keys are loaded anew", async () => {
      const opened = await initialize(world, await world.token({ sub: "resident" }));
      const session = [["mcp-session-id", opened.headers.get("mcp-session-id") ?? ""]] as const;
      const file = join(world.gateway.folder, "gateway.yaml");
      const config = await readFile(file, "utf8");
      await writeFile(file, config.replace(/^ {2}- \{ id: agent,.*\n/m, ""));
      world.gateway.process.kill("SIGHUP");
      await until(() => world.gateway.stderr().includes("configuration_reloaded"));
      expect((await world.call([["x-api-key", world.keys.agent]])).status).to.equal(401);
      const { status } = await world.call([...bearer(await world.token({ sub: "resident" })), ...session]);
      expect(status).to.equal(200);
    });

    it("is issued a ticket by its id", async () => {
      const order = { principal: idOf("worker"), tools: ["echo"], targets: ["recorder"], capabilities: ["execute"] };
      const issued = await world.order("operator", "tickets", order);
      expect([issued.status, JSON.parse(issued.body).ticket.principal]).to.deep.equal([200, idOf("worker")]);
    });
  });

  describe("under the limits of a key", () => {
    afterEach(() => world.stop());

    it("has calls a minute of its own, whichever token they come with", async () => {
      const limits = "limits: { key_calls_per_minute: 60, key_cpu_percent: 100, tenant_cpu_percent: 100 }";
      world = await OauthWorld.start({ more: limits, limitsShares: true });
      const answers: string[] = [];
      for (let round = 0; round < 130; round++) answers.push(await world.callWith(await world.token()));
      const refused = answers.filter((answer) => answer === "RATE_LIMITED key_calls");
      expect(refused.length).to.be.above(0);
      expect(answers.filter((answer) => answer === "result").length + refused.length).to.equal(130);
      expect(await world.callWith(await world.token({ sub: "another" }))).to.equal("result");
    });

    it("has its share of the sessions, and no more", async () => {
      const shares = "limits: { key_cpu_percent: 100, tenant_cpu_percent: 100 }\nmcp_gateway: { max_sessions: 8 }";
      world = await OauthWorld.start({ more: shares, limitsShares: true });
      const statuses: number[] = [];
      for (let round = 0; round < 4; round++) statuses.push((await initialize(world, await world.token())).status);
      expect(statuses).to.deep.equal([200, 200, 429, 429]);
      expect((await initialize(world, await world.token({ sub: "another" }))).status).to.equal(200);
    });
  });
});

async function initialize(world: OauthWorld, token: string): ReturnType<typeof send> {
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "agent", version: "1" } };
  return send(world.gateway.url, {
    method: "POST",
    target: "/mcp",
    headers: [
      ...bearer(token),
      ["content-type", "application/json"],
      ["accept", "application/json, text/event-stream"],
    ],
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
  });
}
