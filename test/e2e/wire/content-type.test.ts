import { expect } from "chai";
import { readAnswer } from "../../support/event-stream.ts";
import { hostileNames } from "../../support/hostile-name.ts";
import { type Route, type RouteId, routes } from "../../support/route-table.ts";
import { SseAgent } from "../../support/sse-agent.ts";
import { sendBytes, type WireRequest } from "../../support/wire.ts";
import { echoCall, keys, openWorld, portsOf, post, type World } from "./world.ts";

/** All that the gateway answers in. None is read by a program that would run a formula in it. */
const formats = [
  "application/json",
  "application/jsonl",
  "application/problem+json",
  "image/svg+xml",
  "text/css",
  "text/event-stream",
  "text/html",
  "text/javascript",
  "text/markdown",
  "text/plain",
];
const all = Object.entries(routes) as [RouteId, Route][];
const mock = `
providers: [{ name: mock, type: mock, models: [mock] }]
model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }`;
const modelRequest = { model: "mock", max_tokens: 16, messages: [{ role: "user", content: "hello" }] };

interface Seen {
  readonly what: string;
  readonly headers: ReadonlyMap<string, string>;
}

describe("what answers are read as", () => {
  let world: World;
  const seen: Seen[] = [];

  before(async () => {
    world = await openWorld(mock);
    await post(world, echoCall());
    const { items } = await (await ask("admin", "/admin/v1/evidence/sessions")).json();
    const session = items[0]?.id ?? "none";
    for (const [id, route] of all) {
      for (const key of [keys.admin, "w".repeat(40)]) await look(id, route, session, key);
    }
    const report = routes["admin.report"];
    for (const format of ["md", "html"])
      await look(
        `admin.report as ${format}`,
        { ...report, path: `${report.path}?format=${format}` },
        session,
        keys.admin,
      );
    await look("no path", { ...report, path: "/nothing" }, session, keys.admin);
    await look("no method", { ...report, method: "DELETE" }, session, keys.admin);
  });
  after(() => world.stop());

  async function ask(port: string, path: string): Promise<{ json(): Promise<{ items: { id: string }[] }> }> {
    return fetch(`${portsOf(world.gateway)[port]}${path}`, { headers: { "x-api-key": keys.admin } }) as never;
  }

  async function look(what: string, { port, method, path }: Route, session: string, key: string): Promise<void> {
    const target = path.replace(/:\w+/, session);
    const body = path.startsWith("/v1/") ? JSON.stringify(modelRequest) : path === "/mcp" ? echoCall() : "{}";
    const request: WireRequest = {
      method,
      target,
      headers: [
        ["x-api-key", key],
        ["accept", "*/*"],
        ...(method === "GET" ? [] : [["content-type", "application/json"] as const]),
      ],
      ...(method === "GET" ? {} : { body }),
    };
    const { status, headers } = await readAnswer(portsOf(world.gateway)[port] as string, request);
    seen.push({ what: `${what}: ${status}`, headers });
  }

  it("is what they say, whatever a browser would guess, on every route, good and refused [S67]", () => {
    const guessed = seen.filter(({ headers }) => headers.get("x-content-type-options") !== "nosniff");
    expect(guessed.map(({ what }) => what)).to.deep.equal([]);
    expect(seen.length).to.be.greaterThan(2 * all.length);
  });

  it("is a closed list of formats, no table that runs formulas among them [S67]", () => {
    const said = seen.flatMap(({ headers }) => headers.get("content-type")?.split(";")[0] ?? []);
    expect([...new Set(said)].sort()).to.deep.equal(formats);
  });

  it("runs nothing but the page's own script, and stands in no frame, where it is a page [S67]", () => {
    const pages = seen.filter(({ headers }) => /html|svg|markdown/.test(headers.get("content-type") ?? ""));
    expect(pages.length).to.be.at.least(4);
    for (const { what, headers } of pages) {
      const policy = headers.get("content-security-policy") ?? "";
      expect(policy, what)
        .to.match(/^default-src '(?:none|self)';/)
        .and.include("frame-ancestors 'none'");
      expect(policy, what).to.not.match(/unsafe|https?:|\*|data:/);
    }
  });

  const broken: readonly (readonly [what: string, bytes: string])[] = [
    ["no HTTP", "nonsense\r\n\r\n"],
    ["two lengths", "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{"],
    [
      "a handshake without a key",
      `GET /v1/ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\norigin: http://evil.example\r\n\r\n`,
    ],
  ];
  for (const [what, bytes] of broken) {
    it(`is what it says in answer to ${what} [S67]`, async () => {
      const said = (await sendBytes(world.gateway.url, bytes)).bytes.toString("latin1");
      expect(said).to.match(/^HTTP\/1\.1 4\d\d /);
      expect(said).to.match(/\r\nx-content-type-options: nosniff\r\n/i);
    });
  }

  it("is one event of a stream, whatever is in it [S67]", async () => {
    // A session of the operator was stopped by the requests above, and all of its sessions with it.
    const agent = await SseAgent.open(world.gateway.url, keys.admin);
    const before = agent.stream.events().length;
    for (const { text, mark } of hostileNames) {
      const { result } = await agent.echo({ [text]: text }, text);
      expect(JSON.stringify(result)).to.include(mark);
    }
    const events = agent.stream.events().slice(before);
    expect(events.map(({ event }) => event)).to.deep.equal(hostileNames.map(() => "message"));
    // Some clients end lines there too, and would read what follows as an event.
    for (const { data } of events) expect(data).to.not.match(/[\u0085\u2028\u2029]/);
    const ids = events.map(({ data }) => (JSON.parse(data) as { id: string }).id);
    expect(ids).to.deep.equal(hostileNames.map(({ text }) => text));
    agent.hangUp();
  });
});
