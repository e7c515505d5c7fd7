import { expect } from "chai";
import { type HeaderList, send, sendBytes } from "../../support/wire.ts";
import { echoCall, effectsOf, keys, messageHeaders, nothing, openWorld, portsOf, post, type World } from "./world.ts";

const listed = `
  allowed_hosts: [agents.example, "ported.example:8443", "[fd00::1]"]
  allowed_origins: ["https://console.example", "https://ported.example:8443"]`;

const goodHosts = [
  "localhost",
  "LocalHost:1",
  "127.0.0.1:65535",
  "[::1]:80",
  "agents.example",
  "AGENTS.example:99",
  "ported.example:8443",
  "[fd00::1]:80",
];
const badHosts = [
  "evil.example",
  "agents.example.evil.example",
  "evil-agents.example",
  "agents.example.",
  "localhost.",
  "ported.example",
  "ported.example:80",
  "evil:x@localhost",
  "localhost@evil.example",
  "localhost:evil.example",
  "localhost, evil.example",
  "localhost/evil.example",
  "localhost evil.example",
  "localhost:",
  "localhost:123456",
  "127.1",
  "0",
  "0.0.0.0",
  "2130706433",
  "0x7f000001",
  "[::ffff:127.0.0.1]",
  "::1",
  "[::1",
  "*",
  "",
  "\xe9",
];

const goodOrigins = ["https://console.example", "HTTPS://Console.example", "http://localhost:3000", "http://[::1]:1"];
const badOrigins = [
  "https://evil.example",
  "http://console.example",
  "https://console.example:8443",
  "https://console.example.evil.example",
  "https://console.example/",
  "https://console.example@evil.example",
  "https://evil.example#https://console.example",
  "https://ported.example",
  "http://localhost.evil.example",
  "http://localhost@evil.example",
  "http://127.0.0.1.nip.example",
  "http://0.0.0.0",
  "ftp://localhost",
  "file://",
  "null",
  "",
  "chrome-extension://abcdefgh",
  "https://console.example, https://evil.example",
];

const notJson: readonly (string | undefined)[] = [
  "text/plain",
  "text/plain;charset=UTF-8",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "text/json",
  "application/jsonp",
  "application/json-rpc",
  "application/json, text/plain",
  "text/plain, application/json",
  "application/json; charset=utf-16",
  "application/json; charset=iso-8859-1",
  "application/json; boundary=x",
  "application/ json",
  "json",
  "*/*",
  "",
  undefined,
];

describe("what a web page could send", () => {
  let world: World;
  before(async () => {
    world = await openWorld("", listed);
  });
  after(() => world.stop());

  /** The status on each port, with a good key and the best path there is. */
  async function statuses(headers: HeaderList): Promise<readonly number[]> {
    const answers: number[] = [];
    for (const url of Object.values(portsOf(world.gateway))) {
      answers.push((await send(url, { target: "/health", headers: [...headers, ["x-api-key", keys.admin]] })).status);
    }
    return answers;
  }

  it("serves the hosts that are listed and this machine's own names [S9]", async () => {
    for (const host of goodHosts) expect(await statuses([["host", host]]), host).to.deep.equal([200, 200, 200]);
  });

  it("refuses every other host on three ports [S9]", async () => {
    for (const host of badHosts) expect(await statuses([["host", host]]), host).to.deep.equal([403, 403, 403]);
  });

  it("refuses two hosts, and none [S9]", async () => {
    const two: HeaderList = [
      ["host", "localhost"],
      ["HOST", "evil.example"],
    ];
    expect(await statuses(two)).to.deep.equal([400, 400, 400]);
    for (const url of Object.values(portsOf(world.gateway))) {
      const bytes = "GET /health HTTP/1.1\r\nconnection: close\r\n\r\n";
      const { bytes: said } = await sendBytes(url, bytes);
      expect(said.toString("latin1")).to.match(/^HTTP\/1\.1 400 /);
    }
  });

  it("serves the origins that are listed and this machine's own [S9]", async () => {
    for (const origin of goodOrigins)
      expect(await statuses([["origin", origin]]), origin).to.deep.equal([200, 200, 200]);
  });

  it("refuses every other origin on three ports [S9]", async () => {
    for (const origin of badOrigins) {
      expect(await statuses([["origin", origin]]), origin).to.deep.equal([403, 403, 403]);
    }
    const two: HeaderList = [
      ["origin", "https://console.example"],
      ["origin", "https://evil.example"],
    ];
    expect(await statuses(two)).to.deep.equal([400, 400, 400]);
  });

  it("refuses foreign hosts and origins for calls and for streams, and nothing is run [S9]", async () => {
    const effects = await effectsOf(world, async () => {
      for (const foreign of [
        ["host", "evil.example"],
        ["origin", "https://evil.example"],
      ] as const) {
        const call = await post(world, echoCall(), { headers: [foreign, ...messageHeaders()] });
        expect(call.status).to.equal(403);
        expect(JSON.parse(call.body).error.code).to.equal(1403);
        const stream: HeaderList = [foreign, ["x-api-key", keys.operator], ["accept", "text/event-stream"]];
        expect((await send(world.gateway.url, { target: "/mcp", headers: stream })).status).to.equal(403);
        const upgrade: HeaderList = [foreign, ["connection", "close, upgrade"], ["upgrade", "websocket"]];
        expect((await send(world.gateway.url, { target: "/v1/ws", headers: upgrade })).status).to.equal(403);
      }
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("gives no web page leave to read an answer [S9]", async () => {
    const { headers } = await post(world, echoCall(), {
      headers: [["origin", "https://console.example"], ...messageHeaders()],
    });
    expect([...headers.keys()].filter((name) => name.startsWith("access-control-"))).to.deep.equal([]);
  });

  for (const type of notJson) {
    it(`refuses a body of type ${JSON.stringify(type) ?? "nothing"}, and nothing is run [S10]`, async () => {
      const effects = await effectsOf(world, async () => {
        const headers: HeaderList = type === undefined ? [] : [["content-type", type]];
        const response = await post(world, echoCall(), { headers: [["x-api-key", keys.operator], ...headers] });
        expect(response.status).to.equal(415);
      });
      expect(effects).to.deep.equal(nothing);
    });
  }

  it("refuses two content types [S10]", async () => {
    const effects = await effectsOf(world, async () => {
      for (const other of ["text/plain", "application/json"]) {
        const headers: HeaderList = [...messageHeaders(), ["content-type", other]];
        expect((await post(world, echoCall(), { headers })).status).to.equal(400);
      }
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("accepts JSON in UTF-8, however that is written", async () => {
    for (const type of ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"']) {
      const headers: HeaderList = [
        ["x-api-key", keys.operator],
        ["content-type", type],
      ];
      expect((await post(world, echoCall(), { headers })).status, type).to.equal(200);
    }
  });
});
