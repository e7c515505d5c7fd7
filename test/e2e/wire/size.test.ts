import { readFile, writeFile } from "node:fs/promises";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { expect } from "chai";
import { dial, encodeRequest, type HeaderList, listenTo, readResponses, send, sendBytes } from "../../support/wire.ts";
import { echoCall, effectsOf, keys, messageHeaders, nothing, openWorld, portsOf, post, type World } from "./world.ts";

const mebibyte = 1024 * 1024;
const limitBytes = 4 * mebibyte;
/** What a flood may add to the memory of the process: well above the limit of a body, far below what was sent. */
const maxGrowth = 96 * mebibyte;

const codings: readonly [string, (data: Buffer) => Uint8Array][] = [
  ["gzip", gzipSync],
  ["x-gzip", gzipSync],
  ["deflate", deflateSync],
  ["br", brotliCompressSync],
  ["zstd", (data) => data.subarray(0, 100)],
  ["compress", (data) => data.subarray(0, 100)],
  ["identity, gzip", gzipSync],
  ["gzip, identity", gzipSync],
  ["GZIP", gzipSync],
  ["chunked", (data) => data.subarray(0, 100)],
  ["unknown", (data) => data.subarray(0, 100)],
  ["", (data) => data.subarray(0, 100)],
];

describe("more than there is room for", () => {
  let world: World;
  before(async () => {
    world = await openWorld();
    await post(world, echoCall());
  });
  after(() => world.stop());

  /** By how much the process grew at its peak while `step` ran. */
  async function peakGrowth(step: () => Promise<unknown>): Promise<number> {
    const folder = `/proc/${world.gateway.process.pid}`;
    const highWater = async (): Promise<number> => {
      const status = await readFile(`${folder}/status`, "utf8");
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
    };
    await writeFile(`${folder}/clear_refs`, "5"); // the peak starts again from what is in use now
    const before = await highWater();
    await step();
    return (await highWater()) - before;
  }

  it("refuses a body over the limit with 413, by its length or by its bytes, and keeps none of it [S19]", async () => {
    const growth = await peakGrowth(async () => {
      const effects = await effectsOf(world, async () => {
        for (const size of [limitBytes + 1, 10 * mebibyte, 25 * mebibyte]) {
          const response = await post(world, Buffer.alloc(size, " "));
          expect(response.status, `${size} bytes`).to.equal(413);
          expect(JSON.parse(response.body).error.data.code).to.equal("BODY_TOO_LARGE");
        }
      });
      expect(effects).to.deep.equal(nothing);
    });
    expect(growth).to.be.below(maxGrowth);
  });

  it("lets a client that sends everything before it reads learn why [S19]", async () => {
    const { url } = world.gateway;
    for (const headers of [messageHeaders(), messageHeaders().slice(1)]) {
      const socket = await dial(url);
      const request = { method: "POST", target: "/mcp", headers, body: Buffer.alloc(10 * mebibyte, " ") };
      await new Promise<void>((resolve, reject) => {
        socket.once("error", reject);
        socket.write(encodeRequest(url, request), () => resolve());
      });
      const { bytes } = await listenTo(socket);
      expect(readResponses(bytes).map(({ status }) => status)).to.deep.equal([headers.length === 2 ? 413 : 401]);
    }
  });

  it("accepts a body of exactly the limit", async () => {
    const call = echoCall('{"a":"|"}');
    const body = call.replace("|", "x".repeat(limitBytes - call.length + 1));
    expect(Buffer.byteLength(body)).to.equal(limitBytes);
    expect((await post(world, body)).status).to.equal(200);
  });

  it("refuses a length it would never read, without reading it [S19]", async () => {
    for (const length of ["104857600", "9007199254740991", "99999999999999999"]) {
      const headers: HeaderList = [...messageHeaders(), ["content-length", length]];
      const bytes = encodeRequest(world.gateway.url, { method: "POST", target: "/mcp", headers });
      const { bytes: said, closed } = await sendBytes(world.gateway.url, bytes);
      expect(readResponses(said)[0]?.status, length).to.equal(413);
      expect(closed).to.equal(true);
    }
  });

  for (const [coding, encode] of codings) {
    it(`refuses content-encoding \`${coding}\` unread: 50 MB in 48 kB stay 48 kB [S19]`, async () => {
      const bomb = encode(Buffer.alloc(50_000_000, " "));
      const growth = await peakGrowth(async () => {
        const effects = await effectsOf(world, async () => {
          const headers: HeaderList = [...messageHeaders(), ["content-encoding", coding]];
          expect((await post(world, bomb, { headers })).status).to.equal(415);
        });
        expect(effects).to.deep.equal(nothing);
      });
      expect(growth).to.be.below(40 * mebibyte);
    });
  }

  it("refuses a compressed body without a word about it as what it is: no JSON [S19]", async () => {
    const effects = await effectsOf(world, async () => {
      expect((await post(world, gzipSync(echoCall()))).status).to.equal(400);
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("ends endless chunks with 413 and a closed connection, from many at once, in bounded memory [S19]", async () => {
    const refusals = (): number => world.gateway.stderr().split('"BODY_TOO_LARGE"').length;
    const before = refusals();
    const growth = await peakGrowth(async () => {
      const effects = await effectsOf(world, async () => {
        const ends = await Promise.all(Array.from({ length: 8 }, () => floodChunks(world.gateway.url)));
        for (const { statuses, closed } of ends) {
          expect(closed).to.equal(true);
          // Who still sends may lose the answer to the reset that follows it.
          expect(statuses).to.be.deep.oneOf([[413], []]);
        }
      });
      expect(effects).to.deep.equal(nothing);
    });
    expect(refusals() - before).to.equal(8);
    expect(growth).to.be.below(maxGrowth);
  });

  it("refuses 2,001 headers with 431 on three ports, and drops none in silence [S22]", async () => {
    const many: HeaderList = Array.from({ length: 2_001 }, (_, index) => [`a${index % 10}`, ""] as const);
    const effects = await effectsOf(world, async () => {
      for (const url of Object.values(portsOf(world.gateway))) {
        for (const headers of [many, many.slice(0, 101)]) {
          const response = await send(url, { target: "/health", headers: [["host", "localhost"], ...headers] });
          expect(response.status).to.equal(431);
        }
      }
      // A second key behind more headers than Node keeps would be a key nobody sees.
      const behind: HeaderList = [...messageHeaders(), ...many, ["x-api-key", keys.admin]];
      expect((await post(world, echoCall(), { headers: behind })).status).to.equal(431);
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("refuses a header, a path or a trailer of 17 kB with 431 [S22]", async () => {
    const long = "x".repeat(17_000);
    const effects = await effectsOf(world, async () => {
      for (const url of Object.values(portsOf(world.gateway))) {
        expect((await send(url, { target: "/health", headers: [["x-long", long]] })).status).to.equal(431);
        expect((await send(url, { target: "/health", headers: [[long, "x"]] })).status).to.equal(431);
        expect((await send(url, { target: `/health?${long}` })).status).to.equal(431);
      }
      const headers: HeaderList = [...messageHeaders(), ["transfer-encoding", "chunked"]];
      const body = `${echoCall().length.toString(16)}\r\n${echoCall()}\r\n0\r\nx-long: ${long}\r\n\r\n`;
      expect((await post(world, body, { headers })).status).to.equal(431);
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("serves after all this as before", async () => {
    expect((await post(world, echoCall())).status).to.equal(200);
  });
});

interface Flood {
  readonly statuses: readonly number[];
  readonly closed: boolean;
  readonly elapsedMs: number;
}

/** Sends chunks for as long as anyone takes them. */
async function floodChunks(url: string): Promise<Flood> {
  const socket = await dial(url);
  const conversation = listenTo(socket, 20_000);
  const headers: HeaderList = [...messageHeaders(), ["transfer-encoding", "chunked"]];
  socket.write(encodeRequest(url, { method: "POST", target: "/mcp", headers }));
  const chunk = `10000\r\n${" ".repeat(0x10000)}\r\n`;
  let answered = false;
  socket.once("data", () => {
    answered = true;
  });
  const pour = (): void => {
    while (!answered && socket.writable && socket.write(chunk));
  };
  socket.on("drain", pour);
  pour();
  const { bytes, closed, elapsedMs } = await conversation;
  return { statuses: readResponses(bytes).map(({ status }) => status), closed, elapsedMs };
}
