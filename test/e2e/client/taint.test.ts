import { expect } from "chai";
import {
  awaitNotification,
  type ClientKind,
  type ClientSide,
  clientKinds,
  connectClient,
  handshakeKinds,
  type McpClient,
} from "../../support/mcp-client.ts";
import { scriptedServer } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

const uri = "page://one";
const text = (said: string): object => ({ content: [{ type: "text", text: said }] });
const done = { result: text("done") };
const progress = { method: "notifications/progress", params: { progress: 1, message: "a stranger writes" } };
const log = { method: "notifications/message", params: { level: "info", data: "a stranger writes" } };
const touched = { method: "notifications/resources/updated", params: { uri } };
const question = {
  id: "q",
  method: "elicitation/create",
  params: { message: "a stranger asks", requestedSchema: { type: "object", properties: {} } },
};
/** The calls that say something first are under way for so long after it. */
const delayMs = 4_000;

const pages = {
  fetch: done,
  plain: done,
  withheld: { result: text("nobody is to see this") },
  failing: { result: { ...text("a stranger writes"), isError: true } },
  refusing: { error: { code: -32_000, message: "a stranger writes" } },
  reporting: { first: [progress], delayMs, ...done },
  logging: { first: [log], delayMs, ...done },
  asking: { first: [question], delayMs, ...done },
  chatting: { first: [log], ...done },
  wondering: { first: [question], delayMs: 200, ...done },
  touching: { first: [touched], ...done },
  "resources/list": { first: [log], result: { resources: [{ uri, name: "page" }] } },
  "resources/templates/list": { result: { resourceTemplates: [] } },
  "resources/read": { result: { contents: [{ uri, text: "a stranger writes" }] } },
  "resources/subscribe": { result: {} },
  "resources/unsubscribe": { result: {} },
  "prompts/list": { result: { prompts: [{ name: "letter" }] } },
  "prompts/get": { result: { messages: [{ role: "user", content: { type: "text", text: "a stranger writes" } }] } },
};
const untrusted = "[fetch, withheld, failing, refusing, reporting, logging, asking, resources/read, prompts/get]";

/** All is allowed, and nothing is said of answers. */
const rules = `rules:
  - { id: test.all, title: All, decision: allow, severity: info, risk: 0, match: { phase: [list, input] }, message: allowed }
  - id: test.egress
    title: Mail of tainted sessions
    decision: review
    severity: high
    risk: 50
    match: { phase: input, tool: send }
    when: session_state.taints.exists(t, t.name == "untrusted")
    message: "brought in by {{ session_state.taints[0].tool }}"
`;
const withholding = `${rules}  - { id: test.withhold, title: No, decision: block, match: { phase: output, tool: withheld }, message: no }
`;

function openPages(named: string, policy = rules): Promise<World> {
  return openWorld({
    servers: () => ({ web: scriptedServer(pages), mail: scriptedServer({ send: done }) }),
    keys: { web: `untrusted: ${named}` },
    rules: policy,
    more: "sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }",
  });
}

describe("what strangers wrote, in a session", () => {
  let world: World;
  /** The same, of which nothing is marked. */
  let trusting: World;
  /** The same, of which all is marked that has no tool's name. */
  let wordy: World;
  const clients: McpClient[] = [];

  before(async () => {
    [world, trusting, wordy] = await Promise.all([
      openPages(untrusted),
      openPages("[]", withholding),
      openPages('["notifications/*", elicitation/create]'),
    ]);
  });

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
  });

  after(() => Promise.all([world?.stop(), trusting?.stop(), wordy?.stop()]));

  /** A client of an agent of its own. */
  async function connect(where: World, kind: ClientKind = "v1", side: ClientSide = {}): Promise<McpClient> {
    const headers = { "x-api-key": where.newAgentKey() };
    const client = await connectClient(kind, { url: `${where.gateway.url}/mcp`, headers }, side);
    clients.push(client);
    return client;
  }

  /** Whether mail that the client sends is held: the server's own log says that it was not sent. */
  async function isHeld(where: World, client: McpClient): Promise<boolean> {
    const before = where.calls("mail").length;
    const { isError, content } = await client.callTool("send", { to: "b@example.org" });
    expect(where.calls("mail").length - before).to.equal(isError === true ? 0 : 1);
    if (isError === true) expect(content[0]?.text).to.match(/^Held for review: brought in by /);
    return isError === true;
  }

  for (const kind of clientKinds) {
    it(`taints it where an untrusted tool answers, and no other agent: ${kind}`, async () => {
      const [client, other] = [await connect(world, kind), await connect(world, kind)];
      await client.callTool("plain");
      expect(await isHeld(world, client)).to.equal(false);
      await client.callTool("fetch");
      expect(await isHeld(world, client)).to.equal(true);
      expect(await isHeld(world, other)).to.equal(false);
      const unmarked = await connect(trusting, kind);
      await unmarked.callTool("fetch");
      expect(await isHeld(trusting, unmarked)).to.equal(false);
    });
  }

  const answers: Readonly<Record<string, (client: McpClient) => Promise<unknown>>> = {
    "the error of a tool": (client) => client.callTool("failing"),
    "an error of the protocol": (client) => client.callTool("refusing").catch(() => undefined),
    "a resource": (client) => client.readResource(uri),
    "a prompt": (client) => client.getPrompt("letter"),
  };
  for (const [what, read] of Object.entries(answers)) {
    it(`taints it where ${what} is marked`, async () => {
      for (const [where, held] of [
        [world, true],
        [trusting, false],
      ] as const) {
        const client = await connect(where);
        await read(client);
        expect(await isHeld(where, client)).to.equal(held);
      }
    });
  }

  it("does not taint it where nobody got to see it, but with what is said from then on", async () => {
    const strict = await openPages(untrusted, withholding);
    try {
      const [client, other] = [await connect(strict), await connect(strict)];
      const { content } = await client.callTool("withheld");
      expect(content[0]?.text).to.include("policy withheld its answer");
      expect(await isHeld(strict, client)).to.equal(false);
      for (const [each, held] of [
        [client, true],
        [other, false],
      ] as const) {
        await each.callTool("chatting");
        await awaitNotification(each, ({ method }) => method === "notifications/message");
        expect(await isHeld(strict, each)).to.equal(held);
      }
    } finally {
      await strict.stop();
    }
  });

  for (const kind of handshakeKinds) {
    it(`taints it before a client hears of it beside the answer: ${kind}`, async () => {
      const heard = async (where: World, tool: string): Promise<boolean> => {
        let tell = (): void => undefined;
        const told = new Promise<void>((resolve) => {
          tell = resolve;
        });
        const side: ClientSide = {
          elicitation: () => {
            tell();
            return { action: "decline" };
          },
        };
        const client = await connect(where, kind, side);
        let isOver = false;
        const call = client.callTool(tool, {}, { onProgress: () => tell() }).finally(() => {
          isOver = true;
        });
        void awaitNotification(client, ({ method }) => method === "notifications/message").then(tell, () => undefined);
        await told;
        const held = await isHeld(where, client);
        expect(isOver).to.equal(false);
        await client.close();
        await call.catch(() => undefined);
        return held;
      };
      for (const tool of ["reporting", "logging", "asking"]) {
        expect(await heard(world, tool), tool).to.equal(true);
        expect(await heard(trusting, tool), tool).to.equal(false);
      }
    });
  }

  it("taints it where what comes unasked is marked by its method", async () => {
    const unasked: Readonly<Record<string, (client: McpClient) => Promise<unknown>>> = {
      "notifications/message": (client) => client.listResources(),
      "elicitation/create": (client) => client.callTool("wondering"),
    };
    for (const [method, provoke] of Object.entries(unasked)) {
      for (const [where, held] of [
        [wordy, true],
        [world, false],
      ] as const) {
        const asked: unknown[] = [];
        const client = await connect(where, "v1", {
          elicitation: (params) => ({ action: asked.push(params) && "decline" }),
        });
        await provoke(client);
        if (asked.length === 0) await awaitNotification(client, (note) => note.method === method);
        expect(await isHeld(where, client), method).to.equal(held);
      }
    }
  });

  for (const kind of clientKinds) {
    it(`taints it where the update of a resource is marked: ${kind}`, async () => {
      for (const [where, held] of [
        [wordy, true],
        [trusting, false],
      ] as const) {
        const client = await connect(where, kind);
        await client.subscribe(uri);
        await client.callTool("touching");
        await awaitNotification(client, ({ method }) => method === "notifications/resources/updated");
        expect(await isHeld(where, client)).to.equal(held);
        await client.unsubscribe(uri);
      }
    });
  }
});
