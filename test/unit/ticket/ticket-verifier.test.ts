import { expect } from "chai";
import { rejection } from "../../support/ledger-world.ts";
import { TicketDeskWorld } from "../../support/ticket-desk-world.ts";

describe("TicketVerifier", () => {
  let world: TicketDeskWorld;
  beforeEach(async () => {
    world = await TicketDeskWorld.create();
  });
  afterEach(() => world.remove());

  async function usesOf(id: string): Promise<number | undefined> {
    return (await world.tickets.issuer.list("acme", 100)).items.find((ticket) => ticket.id === id)?.uses;
  }

  describe("when many actions are judged at once", () => {
    async function race(guard?: () => undefined): Promise<readonly PromiseSettledResult<boolean>[]> {
      const { token } = await world.issue({ max_uses: 3 });
      return Promise.allSettled(Array.from({ length: 50 }, () => world.decide(world.present(token), guard)));
    }

    it("lets as many pass as the ticket has uses, and tells the others to be judged again", async () => {
      const settled = await race();
      expect(settled.filter(({ status }) => status === "fulfilled")).to.have.length(3);
      for (const each of settled) {
        if (each.status === "rejected") expect(each.reason).to.include({ code: "TICKET_STATE", detail: "`used_up`" });
      }
      expect(await world.evidence.ledger.verify("acme")).to.include({ ok: true });
    });

    it("would let all of them pass without the check in the turn of the decision", async () => {
      const settled = await race(() => undefined);
      expect(settled.filter(({ status }) => status === "fulfilled").length).to.be.above(3);
    });
  });

  describe("when a write fails", () => {
    it("gives no use back that may be on disk, and none away that is not", async () => {
      const { token, ticket } = await world.issue({ max_uses: 2 });
      // Lost before it was written: the use never was.
      let asked = 0;
      world.holdsStore = () => asked++ !== 0;
      expect(await rejection(world.decide(world.present(token)))).to.include({ code: "EVIDENCE_UNAVAILABLE" });
      world.holdsStore = () => true;
      world.pass(2_000);
      await repaired();
      expect(await usesOf(ticket.id)).to.equal(0);
      // Kept, and called failed: the use is spent.
      asked = 0;
      world.holdsStore = () => asked++ !== 1;
      expect(await rejection(world.decide(world.present(token)))).to.include({ code: "EVIDENCE_UNAVAILABLE" });
      world.holdsStore = () => true;
      world.pass(2_000);
      await repaired();
      expect(await usesOf(ticket.id)).to.equal(1);
      expect(await world.decide(world.present(token))).to.equal(true);
      expect(await world.decide(world.present(token))).to.equal(false);
    });

    async function repaired(): Promise<void> {
      for (let attempt = 0; attempt < 200; attempt++) {
        if (
          await world.evidence.ledger.recordEvent("acme", "heartbeat", {}).then(
            () => true,
            () => false,
          )
        )
          return;
        world.pass(1_000);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      throw new Error("expected the ledger to be repaired");
    }
  });

  it("knows nothing of a ticket whose entry is gone, or was not written by a gateway", async () => {
    const { token, ticket } = await world.issue();
    const key = `acme/ticket/${ticket.id}`;
    const text = (await world.evidence.store.get(key)) ?? "";
    for (const other of [
      undefined,
      "",
      "{}",
      text.replace('"uses":0', '"uses":"none"'),
      text.replace("tkt_", "tkt-"),
    ]) {
      if (other === undefined) await world.evidence.store.del(key);
      else await world.evidence.store.put(key, other);
      expect(world.tickets.verifier.describe(world.present(token)).ticket?.standing, other).to.equal("unknown");
    }
    await world.evidence.store.put(key, text);
    expect(world.present(token).ticket?.standing).to.equal("valid");
    expect(world.tickets.verifier.describe(world.present(token))).to.deep.equal({});
  });

  it("permits what was issued, whatever a token of the same name says", async () => {
    const { token, ticket } = await world.issue({ max_uses: 1 });
    const wider = await world.issue({ max_uses: 100 });
    const key = `acme/ticket/${wider.ticket.id}`;
    const text = (await world.evidence.store.get(`acme/ticket/${ticket.id}`)) ?? "";
    await world.evidence.store.put(key, text.replaceAll(ticket.id, wider.ticket.id));
    expect(await world.decide(world.present(wider.token))).to.equal(true);
    expect(await world.decide(world.present(wider.token))).to.equal(false);
    expect(await world.decide(world.present(token))).to.equal(true);
  });

  it("keeps an expired ticket for a minute, then forgets it on record, and makes room by that", async () => {
    await world.close();
    await world.open({ maxLive: 2 });
    const [first] = [await world.issue({ ttl_seconds: 10 }), await world.issue({ ttl_seconds: 3_600 })];
    world.pass(11_000);
    expect(world.present(first.token).ticket?.standing).to.equal("expired");
    expect(await rejection(world.issue())).to.include({ code: "TICKET_LIMIT" });
    world.pass(60_000);
    await world.issue();
    expect((await world.tickets.issuer.list("acme", 10)).items).to.have.length(2);
    expect(await usesOf(first.ticket.id)).to.equal(undefined);
    expect(world.present(first.token).ticket?.standing).to.equal("expired");
  });

  it("signs on with the same key after a start, and with a new one where the private half is gone", async () => {
    const { token } = await world.issue();
    await world.close();
    await world.open();
    await world.issue();
    const kept = world.tickets.keys.list("acme");
    expect(kept).to.have.length(1);
    world.forgetSigners();
    await world.close();
    await world.open();
    const { token: later } = await world.issue();
    expect(world.tickets.keys.list("acme")).to.have.length(2);
    for (const each of [token, later]) expect(await world.decide(world.present(each))).to.equal(true);
  });
});
