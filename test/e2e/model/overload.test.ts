import { setTimeout as pause } from "node:timers/promises";
import { expect } from "chai";
import { scripts } from "../../fixture/model-provider.ts";
import { type Asked, askModel, openModel, type Told } from "./ask.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const rules = `
  - id: open.not-asked
    title: The word is not said to a model
    decision: block
    severity: high
    risk: 80
    match: { phase: input, protocol: model }
    when: args.messages.exists(m, string(m.content).contains("forbidden"))
    message: the word is not said
  - id: open.ask-first
    title: Somebody is asked first
    decision: review
    severity: low
    risk: 10
    match: { phase: input, protocol: model }
    when: args.messages.exists(m, string(m.content).contains("please review"))
    message: asked for review
`;

/** Of each kind of request, what one says; the number of a request makes it another one. */
const kinds: readonly ((n: number) => Asked)[] = [
  (n) => ({ api: "chat", text: `hello ${n}` }),
  (n) => ({ api: "messages", text: `hello ${n}`, stream: true }),
  (n) => ({ api: "messages", model: "chat-model", text: `hello ${n}` }),
  (n) => ({ api: "chat", text: `forbidden ${n}` }),
  () => ({ api: "messages", text: "please review" }),
];
/** How many of them a provider is asked with. */
const allowedKinds = 3;

const quiet = 8;
const tenfold = 80;
const rounds = 10;

interface Measured {
  readonly kind: number;
  readonly told: Told;
}

describe("model requests at ten times the load [S73]", () => {
  let world: ModelWorld;
  afterEach(() => world.stop());

  async function open(maxConcurrent: number): Promise<void> {
    world = await openModelWorld({ rules, settings: `max_concurrent: ${maxConcurrent}` });
    const answer = scripts.answers({ text: "It is sunny in Zürich today." });
    world.provider.script = async (response, call) => {
      await pause(20);
      await answer(response, call);
    };
  }

  /** So many clients at once, each asking one request after the other. */
  async function run(clients: number): Promise<readonly Measured[]> {
    const measured: Measured[] = [];
    const drive = async (client: number): Promise<void> => {
      for (let round = 0; round < rounds; round++) {
        const kind = (client + round) % kinds.length;
        const asked = (kinds[kind] as (n: number) => Asked)(client * rounds + round);
        measured.push({ kind, told: await askModel(world, asked) });
      }
    };
    await Promise.all(Array.from({ length: clients }, (_, client) => drive(client)));
    return measured;
  }

  it("refuses what is too much, decides the rest as in quiet, and answers it", async () => {
    await open(quiet * 2);
    const before = verdictsOf(await run(quiet));
    expect(before.map((verdicts) => verdicts.length)).to.deep.equal(kinds.map(() => 1));
    const [callsBefore, decidedBefore] = [world.provider.calls.length, await decisions()];

    const all = await run(tenfold);
    const admitted = all.filter(({ told }) => !isTooMuch(told));
    expect(verdictsOf(admitted)).to.deep.equal(before);
    expect(admitted.length).to.be.above(0).and.below(all.length);
    for (const { told } of all.filter(({ told }) => isTooMuch(told))) {
      expect(Number(told.headers.get("retry-after"))).to.be.above(0);
    }

    const allowed = admitted.filter(({ kind }) => kind < allowedKinds).length;
    expect(world.provider.calls.length - callsBefore).to.equal(allowed);
    expect((await decisions()) - decidedBefore).to.equal(admitted.length);
  });

  it("refuses nobody where there is room for all", async () => {
    await open(tenfold * 2 + 1);
    const all = await run(tenfold);
    expect(all.filter(({ told }) => isTooMuch(told))).to.deep.equal([]);
    expect(verdictsOf(all).map((verdicts) => verdicts.length)).to.deep.equal(kinds.map(() => 1));
  });

  it("leaves room for other keys, and says in each API that there is none", async () => {
    await open(2);
    world.provider.script = scripts.stalls();
    const held = new AbortController();
    const hold = (key: string): void =>
      void openModel(world, { headers: { "x-api-key": key }, signal: held.signal }).catch(() => undefined);
    hold(world.keys.agent);
    await reached(1);
    expect(answerOf(await askModel(world))).to.deep.equal([429, "1", "rate_limit_exceeded"]);
    hold(world.keys.other);
    await reached(2);
    const headers = { "x-api-key": world.keys.operator };
    expect(answerOf(await askModel(world, { headers }))).to.deep.equal([503, "1", "gateway_busy"]);
    const told = await askModel(world, { api: "messages", headers });
    expect(answerOf(told)).to.deep.equal([503, "1", "gateway_busy"]);
    expect(told.json()).to.deep.include({ type: "error", request_id: told.headers.get("request-id") });
    expect(world.provider.calls).to.have.length(2);

    held.abort();
    world.provider.script = scripts.answers({ text: "Hello." });
    await served();
  });

  async function decisions(): Promise<number> {
    return (await world.records()).filter(({ kind }) => kind === "decision").length;
  }

  async function reached(calls: number): Promise<void> {
    while (world.provider.calls.length < calls) await pause(5);
  }

  /** Resolves once a request finds room: what was given up gives its own back. */
  async function served(): Promise<void> {
    while ((await askModel(world)).status !== 200) await pause(5);
  }
});

function isTooMuch({ status }: Told): boolean {
  return status === 429 || status === 503;
}

function answerOf(told: Told): readonly unknown[] {
  return [told.status, told.headers.get("retry-after"), told.json().error?.code];
}

/** Of each kind, the different ways in which it was answered. */
function verdictsOf(measured: readonly Measured[]): readonly (readonly string[])[] {
  return kinds.map((_, index) => {
    const own = measured.filter(({ kind }) => kind === index);
    return [...new Set(own.map(({ told }) => `${told.status} ${told.status === 200 ? told.text : codeOf(told)}`))];
  });
}

function codeOf(told: Told): unknown {
  return told.json().error?.code;
}
