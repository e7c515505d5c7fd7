import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { TicketWorld } from "../../support/ticket-world.ts";

/** Each case gets a ticket of its own that would let two actions pass, and shows at its end that it does. */
describe("a ticket that permits nothing", () => {
  let world: TicketWorld;

  before(async () => {
    world = await TicketWorld.start();
  });

  after(() => world.stop());

  async function expectAllowed(token: string, label = "mine"): Promise<void> {
    const before = await world.ran();
    expect((await world.call(token, {}, { label })).isError).to.not.equal(true);
    expect(await world.ran()).to.equal(before + 1);
  }

  describe("is forged where [S43]", () => {
    let token: string;
    let header: string;
    let payload: string;
    let signature: string;
    let stranger: KeyObject;

    before(async () => {
      token = (await world.issue({ max_uses: 100 })).token;
      [header, payload, signature] = token.split(".") as [string, string, string];
      stranger = generateKeyPairSync("ed25519").privateKey;
    });

    after(() => expectAllowed(token));

    function headed(members: object): string {
      return Buffer.from(JSON.stringify(members)).toString("base64url");
    }

    function signedBy(key: KeyObject, head: string, body: string): string {
      return `${head}.${body}.${sign(null, Buffer.from(`${head}.${body}`), key).toString("base64url")}`;
    }

    function kid(): string {
      return (JSON.parse(Buffer.from(header, "base64url").toString()) as { kid: string }).kid;
    }

    function edited(change: (claims: Record<string, unknown>) => void): string {
      const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as Record<string, unknown>;
      change(claims);
      return Buffer.from(JSON.stringify(claims)).toString("base64url");
    }

    const cases: Readonly<Record<string, () => string>> = {
      "another key signed it": () => signedBy(stranger, header, payload),
      "its uses were raised": () => `${header}.${edited((claims) => (claims.max_uses = 1_000))}.${signature}`,
      "its time was put off": () => `${header}.${edited((claims) => (claims.exp = 9_999_999_999))}.${signature}`,
      "another key signed other claims": () =>
        signedBy(
          stranger,
          header,
          edited((claims) => (claims.tools = ["*"])),
        ),
      "it says `none`": () => `${headed({ alg: "none", typ: "gateway-ticket+jwt", kid: kid() })}.${payload}.`,
      "it says `none`, and is signed": () =>
        `${headed({ alg: "none", typ: "gateway-ticket+jwt", kid: kid() })}.${payload}.${signature}`,
      "it says `HS256`": () =>
        `${headed({ alg: "HS256", typ: "gateway-ticket+jwt", kid: kid() })}.${payload}.${signature}`,
      "it brings a key along": () =>
        signedBy(stranger, headed({ alg: "EdDSA", typ: "gateway-ticket+jwt", kid: kid(), jwk: {} }), payload),
      "its header is in another order": () =>
        `${headed({ typ: "gateway-ticket+jwt", alg: "EdDSA", kid: kid() })}.${payload}.${signature}`,
      "it has no header": () => `.${payload}.${signature}`,
      "it has no signature": () => `${header}.${payload}.`,
      "it has four parts": () => `${token}.`,
      "it is padded": () => `${token}==`,
      "it is in upper case": () => token.toUpperCase(),
      "it is cut off": () => token.slice(0, -1),
      "it is empty": () => "e30.e30.e30",
      "it is a word": () => "valid",
      "it is too long": () => `${token}${"A".repeat(9_000)}`,
    };
    for (const [what, make] of Object.entries(cases)) {
      it(what, async () => expect(await world.refusal(make(), {}, { label: "mine" })).to.equal("forged"));
    }

    for (const part of ["header", "payload", "signature"] as const) {
      it(`a bit of its ${part} flips`, async () => {
        const place = { header: 0, payload: 1, signature: 2 }[part];
        for (const at of [0, 0.5, 1]) {
          const parts = token.split(".");
          const bytes = Buffer.from(parts[place] as string, "base64url");
          const index = Math.round((bytes.length - 1) * at);
          bytes.writeUInt8(bytes.readUInt8(index) ^ 1, index);
          parts[place] = bytes.toString("base64url");
          expect(await world.refusal(parts.join("."), {}, { label: "mine" })).to.equal("forged");
        }
      });
    }

    it("it is no text", async () => {
      const client = await world.connect(null);
      const result = await client.callTool(
        "echo",
        {},
        { meta: { "io.agent-governance-gateway/ticket": { alg: "none" } } },
      );
      await client.close();
      expect(JSON.stringify(result)).to.match(/needs a capability ticket: forged/);
    });
  });

  it("is expired once its time is over, even where it was valid before [S43, R8-4]", async () => {
    const { token } = await world.issue({ max_uses: 2, ttl_seconds: 2 });
    await expectAllowed(token);
    await sleep(2_100);
    expect(await world.refusal(token, {}, { label: "mine" })).to.equal("expired");
  });

  it("belongs to the session that used it first [S43]", async () => {
    const { token, ticket } = await world.issue({ max_uses: 3 });
    await expectAllowed(token, "first");
    expect(await world.refusal(token, {}, { label: "second" })).to.equal("replayed");
    expect(await world.refusal(token)).to.equal("replayed");
    await expectAllowed(token, "first");
    expect((await world.list()).find(({ id }) => id === ticket.id)).to.include({ uses: 2 });
  });

  it("belongs to its principal [S43]", async () => {
    const { token } = await world.issue({ max_uses: 2 });
    for (const person of ["other", "rita", "adam", "vera"] as const) {
      expect(await world.refusal(token, {}, { person })).to.equal("other_principal");
    }
    await expectAllowed(token);
  });

  it("belongs to its tenant, which a stranger learns nothing more of [S43]", async () => {
    const { token, ticket } = await world.issue({ max_uses: 2 });
    expect(await world.refusal(token, {}, { person: "foreign" })).to.equal("other_tenant");
    expect((await world.list("foreign")).map(({ id }) => id)).to.not.include(ticket.id);
    await expectAllowed(token);
  });

  for (const [what, scope] of Object.entries({
    tool: { tools: ["deep", "ech", "Echo", "echo2*"] },
    target: { targets: ["other", "rec*d"] },
    capability: { capabilities: ["read", "write", "delete"] },
  })) {
    it(`is out of scope for another ${what}`, async () => {
      const { token } = await world.issue(scope);
      expect(await world.refusal(token, {}, { label: "mine" })).to.equal("out_of_scope");
    });
  }

  it("is in scope where globs meet", async () => {
    const { token } = await world.issue({ tools: ["x", "e*o"], targets: ["*"], capabilities: ["read", "execute"] });
    await expectAllowed(token);
  });

  it("is revoked at once, for good, and once", async () => {
    const { token, ticket } = await world.issue({ max_uses: 3 });
    await expectAllowed(token);
    const revoke = (person: "rita" | "vera" | "foreign") =>
      world.ask<{ ticket: object }>(person, "DELETE", `tickets/${ticket.id}`, { reason: "not needed" });
    expect((await revoke("vera")).status).to.equal(403);
    expect((await revoke("foreign")).status).to.equal(404);
    await expectAllowed(token);
    const { status, body } = await revoke("rita");
    expect(status).to.equal(200);
    expect(body.ticket).to.include({ state: "revoked", uses: 2 });
    expect(await world.refusal(token, {}, { label: "mine" })).to.equal("revoked");
    const again = await revoke("rita");
    expect([again.status, again.body.code]).to.deep.equal([409, "TICKET_STATE"]);
    expect(await world.refusal(token, {}, { person: "other" })).to.equal("other_principal");
    expect(await world.evidence.verify()).to.include({ ok: true });
  });
});
