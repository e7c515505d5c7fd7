import { expect } from "chai";
import { echoCall, effectsOf, keys, openWorld, type World } from "../e2e/wire/world.ts";
import { routes } from "../support/route-table.ts";
import { SseAgent } from "../support/sse-agent.ts";
import { type HeaderList, send } from "../support/wire.ts";

const nothing = { calls: 0, records: 0 };

/** What a web page can send without asking first, and what has no type at all. */
const foreignTypes: readonly (string | undefined)[] = [
  "text/plain",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  undefined,
];

/** A call under other spellings of the names of its members. */
const otherSpellings: readonly string[] = [
  '{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"echo"}}',
  '{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call","params":{"name":"echo"}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","PARAMS":{"name":"echo"}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","paramſ":{"name":"echo"}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"echo"}}',
];

describe("a message in another form than the one that is judged", () => {
  let world: World;
  let agent: SseAgent;
  before(async () => {
    world = await openWorld();
    agent = await SseAgent.open(world.gateway.url, keys.operator);
    await agent.echo();
  });
  after(async () => {
    agent?.hangUp();
    await world?.stop();
  });

  const posts = Object.entries(routes).filter(([, { method, port }]) => method === "POST" && port === "gateway");

  it("is asked of every route of the gateway port that takes a body", () => {
    expect(posts.map(([id]) => id)).to.include.members(["mcp.post", "sse.post", "model.chat", "action.hook"]);
  });

  for (const [id, { path }] of posts) {
    it(`is not read by ${id} where its type is none of JSON, and nothing is run [S10]`, async () => {
      const names: Readonly<Record<string, string>> = { id: agent.path.split("/").at(-1) ?? "", agent: "generic" };
      const target = path.replace(/:(\w+)$/, (_, name: string) => names[name] ?? "gemini-model:generateContent");
      const effects = await effectsOf(world, async () => {
        for (const type of foreignTypes) {
          const headers: HeaderList = [
            ["x-api-key", keys.operator],
            ...(type === undefined ? [] : [["content-type", type] as const]),
          ];
          const { status, body } = await send(world.gateway.url, { method: "POST", target, headers, body: echoCall() });
          // Coding agents take every other status for leave: a hook answers them in their own words.
          if (id === "action.hook")
            expect([status, body].join(" "), String(type)).to.match(/^200 .*"deny".*content-type: application\/json/);
          else expect(status, String(type)).to.equal(415);
        }
      });
      expect(effects).to.deep.equal(nothing);
    });
  }

  it("runs nothing over HTTP+SSE where its members have other names [S14]", async () => {
    const results = (): number => agent.stream.events().filter(({ data }) => data.includes('"content"')).length;
    const before = results();
    const effects = await effectsOf(world, async () => {
      for (const body of otherSpellings) await agent.post(body);
      // What was posted before it is answered before it.
      await agent.request("ping");
    });
    expect(effects.calls).to.equal(0);
    expect(results()).to.equal(before);
  });

  it("reaches the upstream as the gateway renders it, over HTTP+SSE too [S14]", async () => {
    const params = '{ "name" : "echo", "NAME":"deep", "arguments" : { "z" : "\\u0061" , "a":[1 ] }, "extra":true }';
    const extra = '"PARAMS":{"name":"deep"},"paramſ":{"name":"deep"},"__proto__":{"method":"x"}';
    const { status } = await agent.post(
      `\r\n {"extra":1,"jsonrpc":"2.0","id":"one","method":"tools\\/call","params":${params},${extra}}\t`,
    );
    expect(status).to.equal(202);
    await agent.stream.awaitMessage(({ id }) => id === "one");
    const call = (await world.upstream.calls()).at(-1)?.body ?? "";
    const id = /"id":(\d+)/.exec(call)?.[1];
    expect(call).to.equal(
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"z":"a","a":[1]}}}`,
    );
  });
});
