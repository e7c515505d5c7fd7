import { expect } from "chai";
import { GatewayError } from "../../../../core/action/error.ts";
import type { Principal } from "../../../../core/action/principal.ts";
import { type Occupant, SessionTable } from "../../../../core/gateway/mcp/session-table.ts";

const principal = (id: string, tenant = "acme"): Principal => ({ id, tenant, role: "viewer", keyId: id });
const [mine, theirs] = [principal("mine"), principal("theirs")];

class Session implements Occupant {
  readonly id: string;
  readonly principal: Principal;
  busy = false;
  isClosed = false;

  constructor(id: string, owner: Principal) {
    this.id = id;
    this.principal = owner;
  }

  endStream(): void {
    this.busy = false;
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

describe("SessionTable", () => {
  let nowMs: number;
  let table: SessionTable;
  beforeEach(() => {
    let count = 0;
    nowMs = 0;
    table = new SessionTable({
      maxSessions: 8,
      shares: { keySharePercent: 25, tenantSharePercent: 50 },
      idleMs: 1_800_000,
      elapsedMs: () => nowMs,
      newId: () => `id-${++count}`,
      onCount: () => undefined,
    });
  });
  afterEach(() => table.closeAll());

  const add = (owner: Principal): Promise<Session> => table.add(owner, async (id) => new Session(id, owner));
  const refusal = (owner: Principal): Promise<unknown> =>
    add(owner).then(
      () => undefined,
      (error: unknown) => (error instanceof GatewayError ? error.message : error),
    );

  it("ends the session of the same key that was idle longest, once that is over a minute", async () => {
    const other = await add(theirs);
    nowMs = 1_000;
    const [first, second] = [await add(mine), await add(mine)];
    nowMs = 31_000;
    table.find(Session, first.id, mine);
    expect(await refusal(mine)).to.equal(
      "too many sessions: expected at most 2 open sessions with one key; end one, or try again in 30 s",
    );
    nowMs = 61_000;
    await add(mine);
    expect([first, second, other].map(({ isClosed }) => isClosed)).to.deep.equal([false, true, false]);
    first.busy = true;
    nowMs = 120_000;
    expect(await refusal(mine)).to.contain("try again in 1 s");
  });

  it("ends none in use, and of another key only where the tenant or the table has no place left", async () => {
    const [first, second] = [await add(mine), await add(mine)];
    for (const session of [first, second]) session.busy = true;
    await add(theirs);
    nowMs = 61_000;
    expect(await refusal(mine)).to.contain("with one key; end one, or try again in 60 s");
    await add(theirs);
    expect(await refusal(principal("third"))).to.equal(undefined);
    expect([first, second].map(({ isClosed }) => isClosed)).to.deep.equal([false, false]);
    expect(await refusal(principal("third"))).to.contain("expected at most 4 open sessions of one tenant");
  });
});
