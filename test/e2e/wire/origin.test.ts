import { expect } from "chai";
import { type HeaderList, send, sendBytes } from "../../support/wire.ts";
import {
  echoCall,
  effectsOf,
  holdCall,
  keys,
  messageHeaders,
  nothing,
  openWorld,
  portsOf,
  post,
  type World,
} from "./world.ts";

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

  /** Sends a change to the admin port, with nothing a browser would not send. */
  async function change(method: string, target: string, headers: HeaderList): Promise<number> {
    const request = { method, target, headers: [["x-api-key", keys.admin] as const, ...headers], body: "" };
    return (await send(world.gateway.adminUrl, request)).status;
  }

  it("refuses every change on the admin port that does not say it is JSON, with a body or without [S10]", async () => {
    const approval = await holdCall(world);
    const { body } = await send(world.gateway.adminUrl, {
      target: "/admin/v1/openapi.json",
      headers: [["x-api-key", keys.admin]],
    });
    const paths = Object.entries((JSON.parse(body) as { paths: Record<string, object> }).paths);
    const changes = paths.flatMap(([path, methods]) =>
      Object.keys(methods)
        .filter((method) => method !== "get" && !path.endsWith("/verify"))
        .map((method) => [method.toUpperCase(), path.replace(/\{.*?\}/, approval)] as const),
    );
    expect(changes.length).to.be.above(20);
    const { calls } = await effectsOf(world, async () => {
      for (const [method, path] of changes) {
        for (const headers of [[], [["content-type", "text/plain"]]] as const) {
          expect(await change(method, path, headers), `${method} ${path}`).to.equal(415);
        }
      }
    });
    expect(calls).to.equal(0);
    const target = `/admin/v1/approvals/${approval}`;
    const found = await send(world.gateway.adminUrl, { target, headers: [["x-api-key", keys.admin]] });
    expect(JSON.parse(found.body)).to.have.nested.property("approval.state", "pending");
  });

  it("lets only its own pages and those of listed origins change something on the admin port [S9]", async () => {
    const json = ["content-type", "application/json"] as const;
    const own = world.gateway.adminUrl;
    const refused: readonly HeaderList[] = [
      [["origin", "http://localhost:3000"]],
      [["origin", `${own}0`]],
      [
        ["origin", own],
        ["sec-fetch-site", "cross-site"],
      ],
      [["sec-fetch-site", "cross-site"]],
      [["sec-fetch-site", "same-site"]],
    ];
    const accepted: readonly HeaderList[] = [
      [],
      [["sec-fetch-site", "none"]],
      [
        ["origin", own],
        ["sec-fetch-site", "same-origin"],
      ],
      [
        ["origin", "https://console.example"],
        ["sec-fetch-site", "cross-site"],
      ],
    ];
    let approval = await holdCall(world);
    for (const headers of refused) {
      const status = await change("POST", `/admin/v1/approvals/${approval}/approve`, [json, ...headers]);
      expect(status, JSON.stringify(headers)).to.equal(403);
    }
    for (const [at, headers] of accepted.entries()) {
      if (at > 0) approval = await holdCall(world);
      const status = await change("POST", `/admin/v1/approvals/${approval}/approve`, [json, ...headers]);
      expect(status, JSON.stringify(headers)).to.equal(200);
    }
  });
});
