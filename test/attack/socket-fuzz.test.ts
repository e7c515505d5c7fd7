import { expect } from "chai";
import { tableHead, tableRow } from "../bench/table.ts";
import { echoCall, keys, openWorld, type World } from "../e2e/wire/world.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import { FuzzBudget, fuzzInputs, fuzzMinutes, fuzzSeed, randomFrom } from "../support/fuzz.ts";
import { mutateInput } from "../support/input-mutation.ts";
import { processorMs, residentBytes, settledGrowth } from "../support/resident.ts";
import { dial, listenTo, readResponses, send } from "../support/wire.ts";

/** Node's HTTP parser and `ws` read these bytes; what is built on them is the gateway's. */
const words = [
  ...[
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    "0\r\n\r\n",
    "1\r\na\r\n",
    "ffffffff\r\n",
    "-1\r\n",
    "1;a=b\r\n",
    " ",
    "\t",
    "\u0000",
  ],
  ...[
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: 9\r\n",
  ],
  ...["Connection: keep-alive\r\n", "Connection: upgrade\r\n", "Upgrade: h2c\r\n", "Upgrade: websocket\r\n"],
  ...[
    "Expect: 100-continue\r\n",
    "Host: a\r\n",
    "GET / HTTP/1.1\r\n",
    "HTTP/1.0",
    "HTTP/2.0",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  ],
  ...[
    "\u0081\u0000",
    "\u0088\u0002\u0003\u00e8",
    "\u0089\u0000",
    "\u0001\u007e\u00ff\u00ff",
    '"please_review":1,',
    "{}",
    "[",
    "%2e%2e/",
  ],
];
/** Streams at once, and for how long each is listened to where the gateway waits for more. */
const lanes = 16;
const patienceMs = 250;
/** Bytes of memory that a thousand streams may leave; what one of them takes is some ten thousand. */
const maxGrowth = 48 * 1_048_576;

/** A request with these headers and this body, framed in one of the ways that there are. */
function request(line: string, key: string, headers: readonly string[], body = ""): Buffer {
  const all = ["Host: localhost", `X-API-Key: ${key}`, "Content-Type: application/json", ...headers];
  return Buffer.from(`${line} HTTP/1.1\r\n${all.map((each) => `${each}\r\n`).join("")}\r\n${body}`);
}

/** The frame of a client (RFC 6455, section 5.2), masked with zeros. */
function frame(opcode: number, text: string): Buffer {
  const payload = Buffer.from(text);
  const length = payload.length < 126 ? [0x80 | payload.length] : [0xfe, payload.length >> 8, payload.length & 0xff];
  return Buffer.concat([Buffer.from([0x80 | opcode, ...length, 0, 0, 0, 0]), payload]);
}

/** What a client with this key sends, in every protocol of the port. */
function streamsOf(key: string): readonly Buffer[] {
  const call = echoCall('{"text":"hello"}');
  const held = echoCall('{"please_review":"x"}');
  const sized = (body: string): string => `Content-Length: ${Buffer.byteLength(body)}`;
  const chunked = `${call.length.toString(16)}\r\n${call}\r\n0\r\n\r\n`;
  const chat = '{"model":"mock","messages":[{"role":"user","content":"hello"}]}';
  const asked = '{"protocol":"shell","tool":"shell","target":"a","arguments":{"command":"ls"}}';
  const evaluation = '{"type":"evaluate","id":"1","payload":{"action":{"tool":"echo","target":"recorder"}}}';
  const upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
  const socketKey = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
  const post = (path: string, body: string, ...more: readonly string[]): Buffer =>
    request(`POST ${path}`, key, [sized(body), ...more], body);
  return [
    post("/mcp", call, "Connection: close"),
    post("/mcp", held, "Connection: close"),
    request("POST /mcp", key, ["Transfer-Encoding: chunked", "Connection: close"], chunked),
    Buffer.concat([post("/mcp", call), post("/mcp", held), post("/mcp", call, "Connection: close")]),
    post("/v1/chat/completions", chat, "Connection: close"),
    post("/v1/actions/evaluate", asked, "Connection: close"),
    request("GET /sse", key, ["Accept: text/event-stream"]),
    Buffer.concat([
      request("GET /v1/ws", key, [...upgrade, socketKey]),
      ...[evaluation, '{"type":"subscribe","payload":{"channels":["decisions"]}}'].map((text) => frame(1, text)),
      frame(9, "ping"),
      frame(8, "\u0003\u00e8"),
    ]),
  ];
}

describe("byte streams that are almost requests, at a gateway's port", function () {
  this.timeout(600_000 + fuzzMinutes * 120_000);
  let world: World;
  const rows: string[] = [];
  const inputs = fuzzInputs(1_000);

  before(async () => {
    // No stream stops the session of the others.
    const more =
      "sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }\nmodel_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }";
    world = await openWorld(more, "", undefined, { ownProcess: true });
  });
  after(async () => {
    await world?.stop();
    if (fuzzMinutes > 0)
      process.stdout.write(
        `\n${tableHead(["streams of", "streams", "answers", "statuses", "gateway's CPU s", "growth KiB"])}${rows.join("")}`,
      );
  });

  /** The calls of the tool that reached its server, and the decisions on record that let one. */
  async function effects(): Promise<{ readonly calls: readonly string[]; readonly dispatched: number }> {
    const records = await new EvidenceReader(world.gateway.adminUrl, keys.operator).recordsOf();
    const dispatched = records.filter(
      ({ kind, effect, action }) => kind === "decision" && effect === "dispatched" && action.tool === "echo",
    ).length;
    return { calls: (await world.upstream.calls()).map(({ body }) => body), dispatched };
  }

  /** Sends one stream, says that nothing follows, and returns the statuses of the answers. */
  async function sendStream(bytes: Buffer): Promise<readonly number[]> {
    const socket = await dial(world.gateway.url);
    const conversation = listenTo(socket, patienceMs);
    socket.end(bytes);
    return readResponses((await conversation).bytes).map(({ status }) => status);
  }

  /** Sends changed streams, and expects the gateway to be there, to answer others, and to keep nothing of them. */
  async function fuzz(title: string, streams: readonly Buffer[], sharers: number): Promise<void> {
    const random = randomFrom(fuzzSeed);
    const statuses = new Map<number, number>();
    let sent = 0;
    const pour = async (hasRoom: () => boolean): Promise<void> => {
      const lane = async (): Promise<void> => {
        while (hasRoom()) {
          sent++;
          const answers = await sendStream(mutateInput(streams, words, random));
          for (const status of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1);
        }
      };
      await Promise.all(Array.from({ length: lanes }, lane));
    };
    for (const stream of streams) await sendStream(stream);
    await pour(() => sent < inputs / 3);
    const spent = await processorMs(world.gateway);
    const before = await residentBytes(world.gateway);
    const budget = new FuzzBudget(inputs, sharers);
    await pour(() => budget.hasRoom(sent));
    const grown = (await residentBytes(world.gateway)) - before;
    if (fuzzMinutes === 0 && grown >= maxGrowth) {
      // The collector of garbage chooses its moment; a leak grows each time.
      const again = await settledGrowth(maxGrowth, async () => {
        const least = await residentBytes(world.gateway);
        const end = sent + inputs;
        await pour(() => sent < end);
        return (await residentBytes(world.gateway)) - least;
      });
      expect(again).to.be.below(maxGrowth);
    }
    expect(world.gateway.process.exitCode).to.equal(null);
    expect((await send(world.gateway.url, { target: "/health" })).status).to.equal(200);
    const cpu = (await processorMs(world.gateway)) - spent;
    const answers = [...statuses].toSorted(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
    const total = [...statuses.values()].reduce((sum, count) => sum + count, 0);
    rows.push(tableRow([title, sent, total, answers.join(", "), (cpu / 1_000).toFixed(0), (grown / 1_024).toFixed(0)]));
  }

  it(`run nothing and leave no decision where their key is unknown (seed ${fuzzSeed}) [S21]`, async () => {
    const before = await effects();
    await fuzz("a stranger", streamsOf("x".repeat(keys.operator.length)), 2);
    expect(await effects()).to.deep.equal(before);
  });

  it(`run what was decided and recorded, and nothing that policy holds (seed ${fuzzSeed}) [S21]`, async () => {
    await fuzz("a known caller", streamsOf(keys.operator), 2);
    const { calls, dispatched } = await effects();
    expect(calls.length).to.be.within(1, dispatched);
    const given = calls.map((body) => JSON.parse(body).params.arguments as object);
    expect(given.filter((args) => Object.hasOwn(args, "please_review"))).to.deep.equal([]);
  });
});
