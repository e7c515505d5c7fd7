import { createPublicKey, verify } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import type { TicketKey } from "../../../core/ticket/ticket-keys.ts";
import { type Issued, TicketWorld } from "../../support/ticket-world.ts";

describe("issuing tickets", () => {
  let world: TicketWorld;

  before(async () => {
    world = await TicketWorld.start();
  });

  after(() => world.stop());

  const refusals: Readonly<Record<string, readonly [body: JsonObject, status: number, detail: RegExp]>> = {
    "no tools": [{ tools: [] }, 400, /expected `tools` to be a list of 1 to 16 names or globs/],
    "too many tools": [{ tools: Array.from({ length: 17 }, String) }, 400, /expected `tools`/],
    "a long tool": [
      { tools: ["x".repeat(129)] },
      400,
      /expected `tools\/0` to be a name or glob of 1 to 128 characters, got 129/,
    ],
    "a number for a target": [{ targets: [1] }, 400, /expected `targets\/0` to be a name or glob .*, got `1`/],
    "an unknown capability": [
      { capabilities: ["fly"] },
      400,
      /expected `capabilities\/0` to be one of read,.* got `fly`/,
    ],
    "no use": [{ max_uses: 0 }, 400, /expected `max_uses` to be a whole number from 1 to 1000/],
    "too many uses": [{ max_uses: 1_001 }, 400, /from 1 to 1000/],
    "half a use": [{ max_uses: 1.5 }, 400, /from 1 to 1000/],
    "no time": [
      { ttl_seconds: 0 },
      400,
      /expected `ttl_seconds` to be a whole number from 1 to `tickets.max_ttl_seconds`/,
    ],
    "too much time": [{ ttl_seconds: 3_601 }, 400, /from 1 to 3600/],
    "another member": [{ role: "admin" }, 400, /expected only `principal`, .*, got `role`/],
    "no principal": [{ principal: null }, 400, /expected `principal` to be the id of a principal/],
    "an unknown principal": [{ principal: `principal-v1-${"0".repeat(64)}` }, 404, /no such principal/],
  };
  for (const [what, [over, status, detail]] of Object.entries(refusals)) {
    it(`is refused with ${what}`, async () => {
      const before = (await world.list()).length;
      const reply = await world.ask("rita", "POST", "tickets", world.order(over));
      expect([reply.status, (await world.list()).length]).to.deep.equal([status, before]);
      expect(reply.text).to.match(detail);
    });
  }

  it("is for operators and admins, of their own tenant alone", async () => {
    for (const [person, status] of [
      ["adam", 200],
      ["rita", 200],
      ["vera", 403],
      ["agent", 403],
      ["foreign", 404],
    ] as const) {
      expect((await world.ask(person, "POST", "tickets", world.order())).status, person).to.equal(status);
    }
  });

  it("is not for oneself [S53]", async () => {
    const reply = await world.ask("rita", "POST", "tickets", world.order({ principal: world.principal("rita") }));
    expect([reply.status, reply.body.code]).to.deep.equal([403, "TICKET_SELF_ISSUE"]);
    await world.issue({ principal: world.principal("rita") }, "adam");
  });

  it("gives a token that outsiders can verify, with 128 random bits and a time to live [R2.6-1, R8-4]", async () => {
    const begin = Math.floor(Date.now() / 1_000);
    const { token, ticket } = await world.issue();
    const [header = "", payload = "", signature = ""] = token.split(".");
    const { body } = await world.ask<{ items: readonly TicketKey[] }>("vera", "GET", "ticket-keys");
    const { kid, ...fixed } = decode(header);
    expect(fixed).to.deep.equal({ alg: "EdDSA", typ: "gateway-ticket+jwt" });
    const published = body.items.find(({ key_id: id }) => id === kid)?.public_key ?? "";
    const x = Buffer.from(published, "base64").toString("base64url");
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    expect(verify(null, Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, "base64url"))).to.equal(true);
    const claims = decode(payload);
    expect(Buffer.from(String(claims.nonce), "base64url")).to.have.length(16);
    expect(Number(claims.exp) - Number(claims.iat)).to.equal(300);
    expect(claims.iat).to.be.within(begin, begin + 60);
    expect(claims).to.include({ jti: ticket.id, sub: world.principal("agent"), tenant: "acme", max_uses: 1 });
    expect(decode((await world.issue()).token.split(".")[1] ?? "").nonce).to.not.equal(claims.nonce);
  });

  it("signs with a key of the tenant's own that only its owner may read", async () => {
    await world.issue({ principal: world.principal("foreign") }, "foreign").catch(() => undefined);
    const keys = async (person: "rita" | "foreign"): Promise<readonly TicketKey[]> =>
      (await world.ask<{ items: readonly TicketKey[] }>(person, "GET", "ticket-keys")).body.items;
    expect(await keys("rita")).to.have.length(1);
    expect(await keys("foreign")).to.deep.equal([]);
    const folder = join(world.gateway.folder, "data", "keys", "tickets");
    const [file = ""] = await readdir(folder);
    expect((await stat(join(folder, file))).mode & 0o777).to.equal(0o600);
    expect((await stat(folder)).mode & 0o777).to.equal(0o700);
  });

  it("is told in pages, without a token", async () => {
    for (let more = 0; more < 3; more++) await world.issue();
    const all = await world.list();
    const seen: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const path: string = `tickets?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`;
      const { body } = await world.ask<{ items: readonly { id: string }[]; next: string | null }>("vera", "GET", path);
      expect(body.items.length).to.be.within(1, 2);
      seen.push(...body.items.map(({ id }) => id));
      cursor = body.next;
    }
    expect(seen).to.deep.equal(all.map(({ id }) => id));
    expect(seen).to.deep.equal(seen.toSorted());
  });

  it("asks for a reason to revoke, and knows what it revokes", async () => {
    const { ticket } = await world.issue();
    expect((await world.ask("rita", "DELETE", `tickets/${ticket.id}`, {})).text).to.match(/expected `reason`/);
    for (const id of [`tkt_${"0".repeat(32)}`, "x"]) {
      expect((await world.ask("rita", "DELETE", `tickets/${id}`, { reason: "why" })).status).to.equal(404);
    }
  });
});

describe("the settings of tickets", () => {
  async function withWorld(tickets: string, work: (world: TicketWorld) => Promise<void>): Promise<void> {
    const world = await TicketWorld.start({ tickets });
    await work(world).finally(() => world.stop());
  }

  function lifetime({ ticket }: Issued): number {
    return (Date.parse(ticket.expires_at) - Date.parse(ticket.issued_at)) / 1_000;
  }

  it("`default_ttl_seconds` says how long one lasts", () =>
    withWorld("default_ttl_seconds: 77", async (world) => {
      expect(lifetime(await world.issue())).to.equal(77);
    }));

  it("`max_ttl_seconds` bounds it, and the default with it", () =>
    withWorld("max_ttl_seconds: 60", async (world) => {
      expect(lifetime(await world.issue())).to.equal(60);
      const longer = await world.ask("rita", "POST", "tickets", world.order({ ttl_seconds: 61 }));
      expect(longer.text).to.match(/expected `ttl_seconds` to be a whole number from 1 to 60/);
    }));

  it("`allow_self_issue` lets operators issue to themselves", () =>
    withWorld("allow_self_issue: true", async (world) => {
      const { token } = await world.issue({ principal: world.principal("rita") });
      expect((await world.call(token, {}, { person: "rita" })).isError).to.not.equal(true);
    }));

  it("`max_live` bounds how many there are, however many are asked for at once", () =>
    withWorld("max_live: 3", async (world) => {
      const asked = Array.from({ length: 10 }, () => world.ask("rita", "POST", "tickets", world.order()));
      const answers = await Promise.all(asked);
      expect(answers.filter(({ status }) => status === 200)).to.have.length(3);
      for (const { status, body } of answers.filter((answer) => answer.status !== 200)) {
        expect([status, body.code]).to.deep.equal([429, "TICKET_LIMIT"]);
        expect(body.detail).to.match(/expected at most 3 tickets in a tenant/);
      }
    }));
});

function decode(part: string): JsonObject {
  return JSON.parse(Buffer.from(part, "base64url").toString()) as JsonObject;
}
