import { expect } from "chai";
import { textOf } from "../../support/held-site.ts";
import { clientKinds } from "../../support/mcp-client.ts";
import { SseAgent } from "../../support/sse-agent.ts";
import { TaskWorld } from "../../support/task-world.ts";
import { send } from "../../support/wire.ts";

const metaKey = "io.agent-governance-gateway/task";

describe("a signed reference to a task", () => {
  let world: TaskWorld;
  let good: string;
  let session = 0;

  before(async () => {
    world = await TaskWorld.open();
    // Of one session that nobody has: other sessions of the agent work on it by reference alone.
    await world.declare({ task: "nightly", session: "nobody", expected_tools: [] });
    await world.declare({ task: "other-task", session: "nobody-else" });
    good = await world.reference("nightly");
  });

  after(() => world.stop());

  const label = (): string => `session-${++session}`;

  /** Calls `echo` with raw headers; says the status and the code or the words of the answer. */
  async function call(
    where: string,
    reference?: string,
    more: { meta?: unknown; second?: string; person?: "agent" | "other" | "foreign" } = {},
  ): Promise<string> {
    const { meta, second, person = "agent" } = more;
    const params = { name: "echo", arguments: {}, ...(meta === undefined ? {} : { _meta: { [metaKey]: meta } }) };
    const references = [reference, second].filter((each) => each !== undefined);
    const { status, body } = await send(world.gateway.url, {
      method: "POST",
      target: "/mcp",
      headers: [
        ["x-api-key", world.key(person)],
        ["content-type", "application/json"],
        ["x-gateway-session-id", where],
        ...references.map((each) => ["x-gateway-task", each] as const),
      ],
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    });
    const answer = JSON.parse(body) as { error?: { data?: { code?: string }; message: string } };
    return `${status} ${answer.error === undefined ? textOf(answer as never).split(" ")[0] : `${answer.error.data?.code}: ${answer.error.message}`}`;
  }

  async function bytesOf(ask: () => Promise<unknown>): Promise<number> {
    const before = await world.reached();
    await ask();
    return (await world.reached()) - before;
  }

  for (const kind of clientKinds) {
    it(`binds a session with the client ${kind}, from its first call on`, async () => {
      const where = label();
      const headers = { "x-gateway-task": good, ...(kind === "v1 sse" ? {} : { "x-gateway-session-id": where }) };
      const client = await world.connect(kind, headers);
      expect(
        await bytesOf(async () => {
          const { isError, content } = await client.callTool("echo", { turn: kind });
          expect([isError, content[0]?.text]).to.satisfy(
            ([failed, text]: [boolean, string]) => failed && text.includes("session.drift.tool"),
          );
        }),
      ).to.equal(0);
      const [last] = (await world.evidence.recordsOf()).slice(-1);
      expect(last?.action.task).to.equal("nightly");
    });
  }

  it("binds it by `_meta` as well, and never sends that on", async () => {
    const where = label();
    const wide = await world.reference("other-task");
    expect(await call(where, undefined, { meta: wide })).to.match(/^200 /);
    expect((await world.recorder.calls()).at(-1)?.body).to.not.include(wide);
    expect(await call(where, good)).to.match(/^403 TASK_BOUND: .*works on `other-task`/);
  });

  it("binds a connection to /sse, which has no label, by the header of a post", async () => {
    const agent = await SseAgent.open(world.gateway.url, world.key("agent"));
    const message = { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "echo", arguments: {} } };
    const headers = [
      ["x-api-key", world.key("agent")],
      ["content-type", "application/json"],
    ] as const;
    const wrong = await agent.post(message, [...headers, ["x-gateway-task", `${good}x`]]);
    expect([wrong.status, wrong.body]).to.satisfy(([status, body]: [number, string]) => {
      return status === 403 && body.includes("TASK_REFERENCE");
    });
    expect((await agent.post({ ...message, id: 8 }, [...headers, ["x-gateway-task", good]])).status).to.equal(202);
    const answer = await agent.stream.awaitMessage(({ id }) => id === 8);
    expect(JSON.stringify(answer)).to.include("session.drift.tool");
    agent.hangUp();
  });

  it("opens no connection to /sse where it is not good", async () => {
    const { status } = await send(world.gateway.url, {
      target: "/sse",
      headers: [
        ["x-api-key", world.key("agent")],
        ["x-gateway-task", "x.y.z"],
      ],
    });
    expect(status).to.equal(403);
  });

  it("binds a model request, and the tool calls of the same session", async () => {
    const where = label();
    const ask = (reference: string): Promise<Response> =>
      fetch(`${world.gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          "x-api-key": world.key("agent"),
          "content-type": "application/json",
          "x-gateway-session-id": where,
          "x-gateway-task": reference,
        },
        body: JSON.stringify({ model: "mock", messages: [{ role: "user", content: "hello" }] }),
      });
    expect((await ask("not a token")).status).to.equal(403);
    expect((await ask(good)).status).to.equal(200);
    expect(await call(where)).to.match(/^200 Held/);
    expect(await bytesOf(() => call(where))).to.equal(0);
  });

  it("is sent again with each call, as clients with fixed headers do", async () => {
    const where = label();
    expect(await call(where, good)).to.match(/^200 Held/);
    expect(await call(where, good, { meta: good })).to.match(/^200 Held/);
  });

  it("is refused once the session has acted without one", async () => {
    const where = label();
    expect(await call(where)).to.match(/^200 /);
    expect(
      await bytesOf(async () => expect(await call(where, good)).to.match(/^403 TASK_BOUND: .*first call/)),
    ).to.equal(0);
    expect(await bytesOf(() => call(where)), "it goes on without").to.equal(1);
  });

  it("is refused where the session's own manifest is another", async () => {
    expect(await call("nobody-else", good)).to.match(/^403 TASK_BOUND/);
  });

  const now = (): number => Math.floor(Date.now() / 1_000);
  const bad: Readonly<Record<string, () => Promise<[string | undefined, Parameters<typeof call>[2]?]>>> = {
    "that is expired": async () => [await world.reference("nightly", { exp: now() - 1 })],
    "that is good for too long": async () => [await world.reference("nightly", { exp: now() + 32 * 86_400 })],
    "for another tenant": async () => [await world.reference("nightly", { tenant: "umbrella" })],
    "for another principal": async () => [await world.reference("nightly", { principal: "other" })],
    "that another principal sends": async () => [good, { person: "other" }],
    "that another tenant sends": async () => [good, { person: "foreign" }],
    "to a task that nobody declared": async () => [await world.reference("nightly", { task: "daily" })],
    "to a former manifest": async () => [await world.reference("nightly", { manifest: `sha256:${"0".repeat(64)}` })],
    "that the signer of another tenant signed": async () => [
      await world.reference("nightly", {}, world.signer("foreign")),
    ],
    "that nobody signed": async () => [`${good.split(".").slice(0, 2).join(".")}.`],
    "whose claims were changed": async () => [swapPayload(good, (claims) => ({ ...claims, task: "other-task" }))],
    "with one claim more": async () => [await world.reference("nightly", { admin: true } as object)],
    "that says `none`": async () => [swapHeader(good, { alg: "none", typ: "gateway-task+jwt" })],
    "that says `HS256`": async () => [swapHeader(good, { alg: "HS256", typ: "gateway-task+jwt" })],
    "of another type": async () => [swapHeader(good, { alg: "EdDSA", typ: "JWT" })],
    "in another spelling": async () => [`${good}=`],
    "that is too long": async () => ["a".repeat(5_000)],
    "that is no text": async () => [undefined, { meta: { token: good } }],
    "that differs from the one in `_meta`": async () => [good, { meta: await world.reference("other-task") }],
    "that comes twice": async () => [good, { second: good }],
  };
  for (const [what, make] of Object.entries(bad)) {
    it(`is refused ${what}, and nothing runs`, async () => {
      const where = label();
      const [reference, more] = await make();
      const reached = await bytesOf(async () => {
        expect(await call(where, reference, more)).to.match(/^(?:403 TASK_REFERENCE|400 DUPLICATE_HEADER): /);
      });
      expect(reached).to.equal(0);
      if (more?.person === undefined) expect(await call(where), "the session has no task").to.match(/^200 \{/);
    });
  }
});

function swapHeader(token: string, header: object): string {
  const [, payload, signature] = token.split(".");
  return `${Buffer.from(JSON.stringify(header)).toString("base64url")}.${payload}.${signature}`;
}

function swapPayload(token: string, change: (claims: object) => object): string {
  const [header, payload = "", signature] = token.split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as object;
  return `${header}.${Buffer.from(JSON.stringify(change(claims))).toString("base64url")}.${signature}`;
}
