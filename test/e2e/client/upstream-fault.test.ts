import { expect } from "chai";
import { Agent, type Answer } from "../../support/agent.ts";
import { everythingServer, hostileServer, startEverything } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

/** Fault, the exact words to the client, and what evidence can say of the outcome. */
type Fault = readonly [tool: string, code: string, message: RegExp];

/** Faults of one answer: the connection goes on. */
const answers: readonly Fault[] = [
  ["hang", "UPSTREAM_TIMEOUT", /^upstream did not answer in time: expected an answer to `tools\/call` within 600 ms$/],
  ["nonsense", "UPSTREAM_INVALID", /^invalid response from upstream: malformed JSON: unexpected character$/],
  ["broken", "UPSTREAM_INVALID", /^invalid response from upstream: malformed JSON: unexpected character$/],
  [
    "batch",
    "UPSTREAM_INVALID",
    /^invalid response from upstream: invalid request: expected one JSON-RPC message, got a batch$/,
  ],
  [
    "duplicate_key",
    "UPSTREAM_INVALID",
    /^invalid response from upstream: malformed JSON: duplicate key `a` at offset \d+$/,
  ],
  [
    "deep",
    "UPSTREAM_INVALID",
    /^invalid response from upstream: JSON exceeds a bound: expected at most 64 levels, got more at offset \d+$/,
  ],
  [
    "not_an_object",
    "UPSTREAM_INVALID",
    /^invalid response from upstream: invalid request: expected a `method`, or a response with either `result` or `error`$/,
  ],
  [
    "both",
    "UPSTREAM_INVALID",
    /^invalid response from upstream: invalid request: expected a `method`, or a response with either `result` or `error`$/,
  ],
  [
    "invalid_utf8",
    "UPSTREAM_INVALID",
    /^invalid response from upstream: malformed JSON: expected UTF-8, got invalid bytes$/,
  ],
  [
    "huge",
    "UPSTREAM_INVALID",
    /^invalid response from upstream: expected a message of at most 1048576 bytes, got more$/,
  ],
];

/** Faults that end the connection, each at an upstream of its own, so that none waits for another's. */
const endings: readonly Fault[] = [
  ["die", "UPSTREAM_UNAVAILABLE", /^upstream unavailable: the process ended \(exit code 7\)$/],
  ["flood", "UPSTREAM_INVALID", /^invalid response from upstream: the upstream floods the gateway with messages$/],
  [
    "endless",
    "UPSTREAM_INVALID",
    /^invalid response from upstream: expected a line end on standard output, got an endless line$/,
  ],
  [
    "wrong_id",
    "UPSTREAM_INVALID",
    /^invalid response from upstream: expected the id of a request, got an answer to none$/,
  ],
];

function toolsOf(faults: readonly Fault[]): string {
  return JSON.stringify(
    [...faults.map(([name]) => name), "echo"].map((name) => ({ name, inputSchema: { type: "object" } })),
  );
}

describe("an upstream that fails", () => {
  let world: World;
  let agent: Agent;
  let bystander: Agent;

  before(async () => {
    const fatal = endings.map((fault) => [fault[0], hostileServer({ TOOLS: toolsOf([fault]) })] as const);
    world = await openWorld({
      servers: () => ({
        every: everythingServer(),
        hostile: hostileServer({ TOOLS: toolsOf(answers) }),
        ...Object.fromEntries(fatal),
        dead: hostileServer({ START: "die" }),
        mute: hostileServer({ START: "hang" }),
      }),
      keys: {
        hostile: "tool_prefix: hostile_, timeout_ms: 600",
        mute: "start_timeout_ms: 500",
        ...Object.fromEntries(endings.map(([name]) => [name, `tool_prefix: ${name}_, timeout_ms: 5000`])),
      },
      upstreams: [`{ name: nobody, transport: http, url: "http://127.0.0.1:9/mcp" }`],
      more: "limits: { upstream_reply_bytes: 1048576 }",
    });
    agent = new Agent(world.gateway.url, world.key, "faults");
    bystander = new Agent(world.gateway.url, world.key, "bystander");
    for (let round = 0; round < 20; round++) await bystander.call("get-sum", { a: 1, b: 2 });
  });

  after(async () => {
    await Promise.all([agent?.hangUp(), bystander?.hangUp()]);
    await world?.stop();
  });

  /** Calls the tool, and meanwhile calls another upstream without a pause. */
  async function callBeside(tool: string): Promise<{ answer: Answer; served: number }> {
    let [served, done] = [0, false];
    const beside = (async () => {
      while (!done) {
        const { result } = await bystander.call("get-sum", { a: 1, b: 2 });
        expect(result?.content?.[0]?.text).to.equal("The sum of 1 and 2 is 3.");
        served++;
      }
    })();
    const answer = await agent.call(tool);
    done = true;
    await beside;
    return { answer, served };
  }

  async function expectFault(tool: string, [name, code, message]: Fault): Promise<void> {
    const { answer, served } = await callBeside(tool);
    expect(answer.status).to.equal(200);
    expect(answer.error?.data?.code).to.equal(code);
    expect(answer.error?.message).to.match(message);
    expect(answer).not.to.have.property("result");
    expect(served).to.be.above(0);
    const records = (await world.evidence.recordsOf((label) => label === "faults")).filter(
      ({ action }) => action.tool === name,
    );
    expect(records.map(({ kind, effect, reason }) => [kind, effect, reason])).to.deep.equal([
      ["decision", "dispatched", undefined],
      ["outcome", "unknown", code],
    ]);
  }

  for (const fault of answers) {
    it(`with the answer \`${fault[0]}\` fails that call alone; the next one is served`, async () => {
      await expectFault(`hostile_${fault[0]}`, fault);
      expect((await agent.call("hostile_echo")).result?.content?.[0]?.text).to.include('"echo"');
    });
  }

  for (const fault of endings) {
    it(`with \`${fault[0]}\` is started again; the next call is served`, async () => {
      const starts = (): number => world.received(fault[0]).filter(({ method }) => method === "initialize").length;
      // What no client uses is closed again after its start.
      await agent.call(`${fault[0]}_echo`);
      const before = starts();
      await expectFault(`${fault[0]}_${fault[0]}`, fault);
      expect((await agent.call(`${fault[0]}_echo`)).result?.content?.[0]?.text).to.include('"echo"');
      expect(starts() - before).to.equal(1);
    });
  }

  it("from the start is left out, and the admin port says why", async () => {
    const { result } = (await agent.send("tools/list")) as { result?: { tools?: readonly { name: string }[] } };
    expect(result?.tools?.map(({ name }) => name)).to.include.members(["get-sum", "die_echo"]);
    const response = await fetch(`${world.gateway.adminUrl}/admin/v1/upstreams`, {
      headers: { "x-api-key": world.key },
    });
    const { items } = (await response.json()) as { items: readonly { name: string; state: string; reason?: string }[] };
    const states = new Map(items.map(({ name, state, reason }) => [name, `${state}: ${reason}`]));
    expect(states.get("every")).to.equal("up: undefined");
    expect(states.get("dead")).to.equal("down: upstream unavailable: the process ended (exit code 3)");
    expect(states.get("mute")).to.match(/^down: upstream did not answer in time: /);
    expect(states.get("nobody")).to.match(/^down: upstream unavailable: the connection failed \(ECONNREFUSED\)/);
  });

  it("over HTTP and comes back is served again, and the call in between says so", async () => {
    const first = await startEverything("streamableHttp");
    const other = await openWorld({ upstreams: [`{ name: web, transport: http, url: "${first.url}" }`] });
    const caller = new Agent(other.gateway.url, other.key);
    try {
      expect((await caller.call("get-sum", { a: 1, b: 2 })).result?.isError ?? false).to.equal(false);
      await first.stop();
      const between = await caller.call("get-sum", { a: 1, b: 2 });
      expect(between.error?.data?.code).to.equal("UPSTREAM_UNAVAILABLE");
      const second = await startEverything("streamableHttp", Number(new URL(first.url).port));
      const end = performance.now() + 60_000;
      let again = await caller.call("get-sum", { a: 1, b: 2 });
      while (again.result === undefined && performance.now() < end)
        again = await caller.call("get-sum", { a: 1, b: 2 });
      expect(again.result?.content?.[0]?.text).to.equal("The sum of 1 and 2 is 3.");
      await second.stop();
    } finally {
      await caller.hangUp();
      await other.stop();
    }
  });
});
