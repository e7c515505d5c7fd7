import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { TicketWorld, textOf } from "../../support/ticket-world.ts";

const atOnce = 100;
const shiftedClock = fileURLToPath(new URL("../../fixture/shifted-clock.js", import.meta.url));

describe("uses of a ticket", () => {
  let folder: string;
  let world: TicketWorld;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ticket-"));
    world = await TicketWorld.start({}, folder);
  });

  after(async () => {
    await world.stop();
    await rm(folder, { recursive: true });
  });

  it(`are as many as it says when ${atOnce} calls come at once [S43]`, async () => {
    const { token, ticket } = await world.issue({ max_uses: 7 });
    const before = await world.ran();
    const client = await world.connect(token, { label: "race" });
    const calls = Array.from({ length: atOnce }, (_, call) => client.callTool("echo", { call }));
    const results = await Promise.all(calls);
    await client.close();
    const refused = results.filter(({ isError }) => isError === true).map(textOf);
    expect(await world.ran()).to.equal(before + 7);
    expect(refused).to.have.length(atOnce - 7);
    for (const text of refused) expect(text).to.match(/needs a capability ticket: used_up\)/);
    const recorded = (await world.recorded()).filter(({ id }) => id === ticket.id);
    expect(recorded.flatMap(({ use }) => use ?? []).sort()).to.deep.equal([1, 2, 3, 4, 5, 6, 7]);
    expect(recorded).to.have.length(atOnce);
    expect(await world.evidence.verify()).to.include({ ok: true });
  });

  it(`are all made by one session when ${atOnce} sessions come at once`, async () => {
    const { token, ticket } = await world.issue({ max_uses: 1_000 });
    const before = await world.ran();
    const results = await Promise.all(
      Array.from({ length: atOnce }, (_, each) => world.call(token, {}, { label: `session-${each}` })),
    );
    expect(await world.ran()).to.equal(before + 1);
    const refused = results.filter(({ isError }) => isError === true).map(textOf);
    expect(refused).to.have.length(atOnce - 1);
    for (const text of refused) expect(text).to.match(/needs a capability ticket: replayed\)/);
    expect((await world.list()).find(({ id }) => id === ticket.id)).to.include({ uses: 1 });
  });

  it("are over for what is judged when it is revoked", async () => {
    const { token, ticket } = await world.issue({ max_uses: 1_000 });
    const client = await world.connect(token, { label: "revoked" });
    let revoked = false;
    const after: boolean[] = [];
    const calls = Array.from({ length: atOnce }, async (_, call) => {
      if (call === atOnce / 2) {
        await world.ask("rita", "DELETE", `tickets/${ticket.id}`, { reason: "stop" });
        revoked = true;
        return;
      }
      await sleep(call);
      const late = revoked;
      const { isError } = await client.callTool("echo", { call });
      if (late) after.push(isError !== true);
    });
    await Promise.all(calls);
    await client.close();
    expect(after).to.not.include(true);
    expect(await world.refusal(token, {}, { label: "revoked" })).to.equal("revoked");
    expect(await world.evidence.verify()).to.include({ ok: true });
  });

  for (const how of ["a stop", "a kill -9"] as const) {
    it(`are counted on after ${how}, and so are session, revocation and key [S43]`, async () => {
      const mine = { label: "mine" };
      const [used, half, revoked] = [await world.issue(), await world.issue({ max_uses: 2 }), await world.issue()];
      for (const { token } of [used, half]) expect((await world.call(token, {}, mine)).isError).to.not.equal(true);
      await world.ask("rita", "DELETE", `tickets/${revoked.ticket.id}`, { reason: "stop" });
      const inFlight = how === "a stop" ? null : await killInFlight();
      if (how === "a stop") await world.gateway.stop();
      await world.startAgain();
      expect(await world.refusal(used.token, {}, mine)).to.equal("used_up");
      expect(await world.refusal(revoked.token, {}, mine)).to.equal("revoked");
      expect(await world.refusal(half.token, {}, { label: "else" })).to.equal("replayed");
      if (inFlight !== null) expect(await world.refusal(inFlight, {}, { label: "cut" })).to.equal("used_up");
      expect((await world.call(half.token, {}, mine)).isError).to.not.equal(true);
      expect(await world.refusal(half.token, {}, mine)).to.equal("used_up");
      expect(await world.evidence.verify()).to.include({ ok: true });
    });
  }

  /** Kills the gateway while a call that spent its ticket is with the upstream; returns the token. */
  async function killInFlight(): Promise<string> {
    const { token } = await world.issue();
    const before = await world.ran();
    const client = await world.connect(token, { label: "cut" });
    client.callTool("echo", { wait_ms: 30_000 }).catch(() => undefined);
    while ((await world.ran()) === before) await sleep(5);
    await world.gateway.kill9();
    await client.close().catch(() => undefined);
    return token;
  }

  it("wait for the clock, where that was set back to before it was issued [S43]", async () => {
    const { token } = await world.issue({ ttl_seconds: 3_600 });
    await restartAt(-3_600_000);
    expect(await world.refusal(token)).to.equal("not_yet");
    await setClock(0);
    expect((await world.call(token)).isError).to.not.equal(true);
  });

  it("do not come back with a clock that goes back while the gateway runs [S43]", async () => {
    await restartAt(0);
    const { token } = await world.issue({ ttl_seconds: 2 });
    await sleep(2_100);
    await setClock(-1_500);
    expect(await world.refusal(token)).to.equal("expired");
    await setClock(0);
    const later = await world.issue({ ttl_seconds: 60 });
    await setClock(61_000);
    expect(await world.refusal(later.token)).to.equal("expired");
  });

  /** Starts the gateway again with a clock that is wrong by so much, and by what `setClock` says from then on. */
  async function restartAt(offsetMs: number): Promise<void> {
    await world.gateway.stop();
    await setClock(offsetMs);
    await world.startAgain({ NODE_OPTIONS: `--import=${shiftedClock}`, CLOCK_OFFSET: join(folder, "clock") });
  }

  /** Resolves when a gateway that runs has read it. */
  async function setClock(offsetMs: number): Promise<void> {
    await writeFile(join(folder, "clock"), String(offsetMs));
    await sleep(100);
  }
});
