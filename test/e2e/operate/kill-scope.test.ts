import { expect } from "chai";
import type { EvidenceRecord } from "../../../core/evidence/record/record.ts";
import { Agent, type Answer } from "../../support/agent.ts";
import { runCommand } from "../../support/command-host.ts";
import { until } from "../../support/event-stream.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { exportVerified } from "../../support/verified-bundle.ts";
import { send, type WireResponse } from "../../support/wire.ts";
import { effectsOf, type KeyHolder, keys, openWorld, type World } from "../wire/world.ts";

type Scope = "session" | "principal" | "tenant" | "gateway";

interface Row {
  readonly scope: Scope;
  /** Who orders it and who releases it. */
  readonly by: readonly [KeyHolder, KeyHolder];
  /** Whose calls it covers beside the operator's, and whose it does not. */
  readonly covered: readonly KeyHolder[];
  readonly free: readonly KeyHolder[];
  readonly says: RegExp;
}

const rows: readonly Row[] = [
  {
    scope: "session",
    by: ["operator", "admin"],
    covered: [],
    free: ["admin", "viewer", "foreign"],
    says: /session `session-v1-\w+` is stopped until an operator or admin of its tenant/,
  },
  {
    scope: "principal",
    by: ["admin", "operator"],
    covered: [],
    free: ["admin", "viewer", "foreign"],
    says: /principal `principal-v1-\w+` is stopped until an operator or admin of its tenant/,
  },
  {
    scope: "tenant",
    by: ["operator", "admin"],
    covered: ["admin", "viewer"],
    free: ["foreign"],
    says: /tenant `acme` is stopped until an operator or admin of it releases/,
  },
  {
    scope: "gateway",
    by: ["admin", "admin"],
    covered: ["admin", "viewer", "foreign"],
    free: [],
    says: /the whole gateway is stopped until an admin of the tenant that runs it/,
  },
];

describe("stopping more than a session", () => {
  let world: World;
  let reader: EvidenceReader;
  const principals = new Map<KeyHolder, string>();

  before(async () => {
    world = await openWorld("sessions: { gateway_tenant: acme }");
    reader = new EvidenceReader(world.gateway.adminUrl, keys.operator);
    for (const holder of ["admin", "operator", "viewer", "foreign"] as const) {
      expect(isBlocked(await callAs(holder))).to.equal(false);
      const own = await new EvidenceReader(world.gateway.adminUrl, keys[holder]).sessions();
      principals.set(holder, own[0]?.principal ?? "");
    }
  });

  after(() => world.stop());

  async function callAs(holder: KeyHolder, label = "work"): Promise<Answer> {
    const agent = new Agent(world.gateway.url, keys[holder], label);
    try {
      return await agent.call("echo");
    } finally {
      await agent.hangUp();
    }
  }

  /** The session of the operator that all of this is about. */
  async function ownSession(): Promise<string> {
    return (await reader.sessions()).find(({ principal }) => principal === principals.get("operator"))?.id ?? "";
  }

  async function targetOf(scope: Scope): Promise<object> {
    if (scope === "session") return { scope, subject: await ownSession() };
    return scope === "principal" ? { scope, subject: principals.get("operator") } : { scope };
  }

  function order(holder: KeyHolder, what: "kill" | "release", body: object): Promise<WireResponse> {
    return send(world.gateway.adminUrl, {
      method: "POST",
      target: what === "kill" ? "/admin/v1/kills" : "/admin/v1/kills/release",
      headers: [
        ["x-api-key", keys[holder]],
        ["content-type", "application/json"],
      ],
      body: JSON.stringify(body),
    });
  }

  async function listed(holder: KeyHolder, query = ""): Promise<Page> {
    const headers = [["x-api-key", keys[holder]]] as const;
    const { body } = await send(world.gateway.adminUrl, { target: `/admin/v1/kills${query}`, headers });
    return JSON.parse(body) as Page;
  }

  for (const { scope, by, covered, free, says } of rows) {
    describe(`by scope ${scope}`, () => {
      it("blocks all that it covers, lists included, and nothing beside, until it is released with a reason", async () => {
        const target = await targetOf(scope);
        expect((await order(by[0], "kill", { ...target, note: "odd" })).status).to.equal(200);
        const agent = new Agent(world.gateway.url, keys.operator, "work");
        const refused = await effectsOf(world, async () => {
          expect(textOf(await agent.call("echo")))
            .to.match(says)
            .and.to.include(`(rule ${scope}.killed)`);
          expect((await agent.send("tools/list")).error).to.deep.include({ code: 1403 });
          for (const holder of covered) expect(isBlocked(await callAs(holder)), holder).to.equal(true);
        });
        expect(refused.calls).to.equal(0);
        for (const holder of free) expect(isBlocked(await callAs(holder)), holder).to.equal(false);
        const { items } = await listed("viewer");
        expect(items).to.have.lengthOf(1);
        expect(items[0]).to.deep.include({ ...target, reason: "operator", by: principals.get(by[0]), note: "odd" });
        expect((await order(by[1], "release", target)).status).to.equal(400);
        expect(isBlocked(await agent.call("echo"))).to.equal(true);
        expect((await order(by[1], "release", { ...target, reason: "seen to" })).status).to.equal(200);
        expect(isBlocked(await agent.call("echo"))).to.equal(false);
        for (const holder of covered) expect(isBlocked(await callAs(holder)), holder).to.equal(false);
        await agent.hangUp();
      });

      it("cancels upstream what is in flight of it", async () => {
        const mark = `in flight ${scope}`;
        const cancelled = async (): Promise<number> =>
          (await world.upstream.requests()).filter(({ body }) => body.includes("notifications/cancelled")).length;
        const before = await cancelled();
        const agents = (["operator", ...covered, ...free] as const).map((holder) => {
          const agent = new Agent(world.gateway.url, keys[holder], "work");
          return { holder, agent, call: agent.call("echo", { mark, wait_ms: holder === "operator" ? 60_000 : 3_000 }) };
        });
        await until(
          async () =>
            (await world.upstream.calls()).filter(({ body }) => body.includes(mark)).length === agents.length ||
            undefined,
        );
        const target = await targetOf(scope);
        await order(by[0], "kill", target);
        const own = await agents[0]?.call;
        expect(own?.error?.message).to.match(says);
        for (const { holder, call } of agents.slice(1)) {
          const answer = await call;
          expect(answer.error === undefined, holder).to.equal(free.includes(holder));
        }
        await until(async () => (await cancelled()) === before + 1 + covered.length || undefined);
        await order(by[1], "release", { ...target, reason: "seen to" });
        for (const { agent } of agents) await agent.hangUp();
      });

      it("is in the bundle of a session that it bears on, for verifiers to hold the session to", async () => {
        const records = await exportVerified(world.gateway.adminUrl, keys.operator, await ownSession());
        const told = records.flatMap(eventOf).filter((detail) => detail.scope === scope);
        expect(told.map(({ event }) => event)).to.deep.equal(["killed", "released", "killed", "released"]);
      });
    });
  }

  describe("by any scope", () => {
    it("is in no bundle that it does not bear on", async () => {
      const own = await new EvidenceReader(world.gateway.adminUrl, keys.viewer).sessions();
      const id = own.find(({ principal }) => principal === principals.get("viewer"))?.id ?? "";
      const records = await exportVerified(world.gateway.adminUrl, keys.viewer, id);
      const scopes = new Set(records.flatMap(eventOf).map(({ scope }) => scope));
      expect([...scopes]).to.have.members(["tenant", "gateway"]);
      const foreign = await new EvidenceReader(world.gateway.adminUrl, keys.foreign).sessions();
      const others = await exportVerified(world.gateway.adminUrl, keys.foreign, foreign[0]?.id ?? "");
      expect(new Set(others.flatMap(eventOf).map(({ scope }) => scope))).to.deep.equal(new Set(["gateway"]));
    });

    it("is for operators and admins, the whole gateway for admins of one tenant, and each tenant's for itself", async () => {
      const principal = { scope: "principal", subject: principals.get("operator") };
      const tries: readonly (readonly [KeyHolder, object, number])[] = [
        ["viewer", principal, 403],
        ["viewer", { scope: "tenant" }, 403],
        ["viewer", { scope: "gateway" }, 403],
        ["operator", { scope: "gateway" }, 403],
        ["foreign", { scope: "gateway" }, 403],
        ["foreign", principal, 404],
        ["foreign", { scope: "session", subject: await ownSession() }, 404],
        ["operator", { scope: "principal", subject: principals.get("foreign") }, 404],
        ["operator", { scope: "principal", subject: "principal-v1-none" }, 404],
      ];
      for (const what of ["kill", "release"] as const) {
        for (const [holder, target, status] of tries) {
          const body = what === "kill" ? target : { ...target, reason: "x" };
          expect((await order(holder, what, body)).status, `${holder} ${JSON.stringify(body)}`).to.equal(status);
        }
      }
      expect((await listed("admin")).items).to.deep.equal([]);
      for (const holder of ["operator", "viewer", "foreign"] as const) {
        expect(isBlocked(await callAs(holder))).to.equal(false);
      }
    });

    it("takes no order that it does not understand", async () => {
      const orders: readonly object[] = [
        {},
        { scope: "planet" },
        { scope: "session" },
        { scope: "principal" },
        { scope: "tenant", subject: "acme" },
        { scope: "gateway", subject: "acme" },
        { scope: "tenant", note: "" },
        { scope: "tenant", note: "x".repeat(1_025) },
        { scope: "tenant", reason: "x" },
        { scope: ["tenant"] },
      ];
      for (const body of orders)
        expect((await order("admin", "kill", body)).status, JSON.stringify(body)).to.equal(400);
      expect((await order("admin", "release", { scope: "tenant", reason: "x" })).status).to.equal(409);
      expect((await listed("admin")).items).to.deep.equal([]);
    });

    it("lists all scopes page by page", async () => {
      for (const { scope } of rows) await order("admin", "kill", await targetOf(scope));
      const found: string[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const page: Page = await listed(
          "viewer",
          `?limit=1${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`,
        );
        found.push(...page.items.map(({ scope }) => scope));
        cursor = page.next;
      }
      expect(found).to.have.members(rows.map(({ scope }) => scope));
      expect((await listed("foreign")).items.map(({ scope }) => scope)).to.deep.equal(["gateway"]);
      for (const { scope } of rows) await order("admin", "release", { ...(await targetOf(scope)), reason: "seen to" });
    });

    it("is done by the command line too", async () => {
      const type = (...args: string[]) =>
        runCommand(["sessions", ...args, "--admin", world.gateway.adminUrl], { GATEWAY_API_KEY: keys.admin });
      const principal = principals.get("operator") ?? "";
      const targets: readonly (readonly [name: string, args: readonly string[]])[] = [
        [principal, ["--principal", principal]],
        ["the whole tenant", ["--tenant"]],
        ["the whole gateway", ["--gateway"]],
      ];
      for (const [name, args] of targets) {
        expect(await type("kill", ...args, "--note", "odd")).to.include({
          code: 0,
          stderr: `gateway: stopped ${name}\n`,
        });
        expect((await type("killed")).stdout).to.match(
          new RegExp(`^stopped .*\\n${name}  \\S+Z  operator  principal-v1-\\w+  odd\n$`),
        );
        const { items } = await listed("admin");
        expect(JSON.parse((await type("killed", "--json")).stdout)).to.deep.equal(items[0]);
        const released = await type("release", ...args, "--reason", "seen to", "--json");
        expect(released).to.include({ code: 0, stderr: `gateway: released ${name}\n` });
        expect(JSON.parse(released.stdout)).to.deep.include({ scope: items[0]?.scope, state: "released" });
      }
      expect((await type("killed")).stdout).to.equal("");
    });

    it("leaves chains that verify", async () => {
      for (const holder of ["operator", "foreign"] as const) {
        expect(await new EvidenceReader(world.gateway.adminUrl, keys[holder]).verify()).to.include({ ok: true });
      }
    });
  });
});

describe("the whole gateway, where no tenant may stop it", () => {
  it("is stopped by nobody, and the answer says what would have to be configured", async () => {
    const world = await openWorld();
    try {
      const args = ["sessions", "kill", "--gateway", "--admin", world.gateway.adminUrl];
      const { code, stderr } = await runCommand(args, { GATEWAY_API_KEY: keys.admin });
      expect(code).to.equal(1);
      expect(stderr).to.include("this role may not do that");
      expect(stderr).to.include("name a tenant in `sessions.gateway_tenant` and restart");
      const agent = new Agent(world.gateway.url, keys.operator);
      expect(isBlocked(await agent.call("echo"))).to.equal(false);
      await agent.hangUp();
    } finally {
      await world.stop();
    }
  });
});

interface Page {
  readonly items: readonly { readonly scope: string; readonly subject: string | null }[];
  readonly next: string | null;
}

function eventOf(record: EvidenceRecord): readonly { readonly event?: unknown; readonly scope?: unknown }[] {
  return record.kind === "session" && "scope" in record.detail ? [record.detail] : [];
}

function isBlocked({ result }: Answer): boolean {
  return result?.isError === true;
}

function textOf({ result }: Answer): string {
  return result?.content?.[0]?.text ?? "";
}
