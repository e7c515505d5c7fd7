import { expect } from "chai";
import { Agent, type Answer } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { processorMs } from "../../support/resident.ts";
import { keys, openWorld, type World } from "../wire/world.ts";

/** What a caller asks for; the number of a call makes it another one. The pack allows the first, and holds the second. */
const kinds: readonly ((n: number) => readonly [tool: string, args: object])[] = [
  (n) => ["echo", { text: `hello ${n}` }],
  () => ["echo", { please_review: "the same" }],
  (n) => ["no_such_tool", { text: `hello ${n}` }],
];

const quiet = 8;
const tenfold = 80;
/** Calls of one client, one after the other. */
const rounds = 10;

interface Measured {
  readonly kind: number;
  readonly answer: Answer;
  /** Places among all questions and answers, in the order in which the clients sent and got them. */
  readonly asked: number;
  readonly answered: number;
}

interface Load {
  readonly all: readonly Measured[];
  readonly admitted: readonly Measured[];
  readonly cpuMs: number;
}

describe("tool calls at ten times the load [S73]", () => {
  let world: World;

  before(async () => {
    // Enough for the quiet load and about half of the other; a minute's worth may be spent at once.
    const limits =
      "limits: { key_calls_per_minute: 500, tenant_calls_per_minute: 100000, key_share_percent: 100, tenant_share_percent: 100 }";
    const sessions = "sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }";
    world = await openWorld(`${limits}\n${sessions}`, "", undefined, { limitsShares: true, ownProcess: true });
  });
  after(() => world?.stop());

  /** So many clients at once, each on a connection of its own and asking one call after the other. */
  async function load(clients: number): Promise<Load> {
    const all: Measured[] = [];
    let place = 0;
    const agents = Array.from({ length: clients }, () => new Agent(world.gateway.url, keys.operator));
    // Node accepts one connection in each turn of its loop: until then, whoever is connected overtakes the others.
    for (const agent of agents) expect((await agent.send("ping")).status).to.equal(200);
    const drive = async (agent: Agent, client: number): Promise<void> => {
      for (let round = 0; round < rounds; round++) {
        const kind = (client + round) % kinds.length;
        const [tool, args] = (kinds[kind] as (typeof kinds)[number])(client * rounds + round);
        const asked = place++;
        const answer = await agent.call(tool, args);
        all.push({ kind, answer, asked, answered: place++ });
      }
    };
    const before = await processorMs(world.gateway);
    await Promise.all(agents.map(drive));
    const cpuMs = (await processorMs(world.gateway)) - before;
    await Promise.all(agents.map((agent) => agent.hangUp()));
    return { all, admitted: all.filter(({ answer }) => !isTooMuch(answer)), cpuMs };
  }

  async function decisions(): Promise<number> {
    const records = await new EvidenceReader(world.gateway.adminUrl, keys.operator).recordsOf();
    return records.filter(({ kind }) => kind === "decision").length;
  }

  it("refuses what is too much, decides the rest as in quiet, and lets nobody wait for those who come later", async () => {
    const before = await load(quiet);
    expect(before.all.length).to.equal(before.admitted.length);
    const verdicts = verdictsOf(before.admitted);
    expect(verdicts.map((each) => each.length)).to.deep.equal(kinds.map(() => 1));
    const [callsBefore, decidedBefore] = [(await world.upstream.calls()).length, await decisions()];

    const { all, admitted, cpuMs } = await load(tenfold);
    const refusals = all.filter(({ answer }) => isTooMuch(answer));
    expect(refusals.length).to.be.above(0);
    for (const { answer } of refusals) expect(answer.error?.data?.code).to.be.oneOf(["RATE_LIMITED", "GATEWAY_BUSY"]);
    expect(verdictsOf(admitted), "decisions that overload changed").to.deep.equal(verdicts);

    const countOf = (kind: number): number => admitted.filter((each) => each.kind === kind).length;
    expect((await world.upstream.calls()).length - callsBefore).to.equal(countOf(0));
    // A tool that nobody has is no decision.
    expect((await decisions()) - decidedBefore).to.equal(countOf(0) + countOf(1));

    // Latency without a clock: whom later ones overtake, and what one of them costs.
    const overtaken = admitted.map((each) => overtakersOf(each, admitted)).toSorted((a, b) => a - b);
    const p99 = overtaken[Math.floor(overtaken.length * 0.99)] ?? Number.POSITIVE_INFINITY;
    expect(p99, "later calls that overtake all but one of 100").to.be.below(tenfold);
    expect(admitted.length, "far more than may overtake one").to.be.above(3 * tenfold);
    expect(cpuMs / admitted.length).to.be.below((3 * before.cpuMs) / before.admitted.length);
  });
});

function isTooMuch({ status }: Answer): boolean {
  return status === 429 || status === 503;
}

/** Returns how many calls of the same kind were made after a call and answered before it. */
function overtakersOf(call: Measured, others: readonly Measured[]): number {
  const isLater = ({ kind, asked, answered }: Measured): boolean =>
    kind === call.kind && asked > call.asked && answered < call.answered;
  return others.filter(isLater).length;
}

/** Of each kind, the different ways in which it was answered, without ids and what the call said. */
function verdictsOf(measured: readonly Measured[]): readonly (readonly string[])[] {
  return kinds.map((_, index) => {
    const own = measured.filter(({ kind }) => kind === index);
    return [...new Set(own.map(({ answer }) => verdictOf(answer)))];
  });
}

function verdictOf({ status, result, error }: Answer): string {
  const text = (result?.content?.[0]?.text ?? "").replaceAll(/[0-9a-f-]{32,36}|\d+/g, "#");
  return `${status} ${result?.isError} ${error?.data?.code} ${text}`;
}
