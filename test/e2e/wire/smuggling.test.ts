import { expect } from "chai";
import { readResponses, sendBytes } from "../../support/wire.ts";
import { echoCall, effectsOf, keys, openWorld, post, type World } from "./world.ts";

const first = echoCall('{"request":"first"}');
const hidden = echoCall('{"request":"smuggled"}');
const size = first.length;
const chunked = `${size.toString(16)}\r\n${first}\r\n0\r\n\r\n`;
const smuggled =
  `POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${keys.operator}\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${hidden.length}\r\n\r\n${hidden}`;

/** A request to `/mcp` with these framing lines and what follows the head. */
function framed(lines: readonly string[], rest: string): string {
  const fixed = ["Host: localhost", `X-API-Key: ${keys.operator}`, "Content-Type: application/json"];
  return `POST /mcp HTTP/1.1\r\n${[...fixed, ...lines].map((line) => `${line}\r\n`).join("")}\r\n${rest}`;
}

/** Bytes that two readers take for different requests: each is refused, and the connection closed on what follows. */
const table: readonly [string, string][] = [
  ["both lengths", framed([`Content-Length: ${size}`, "Transfer-Encoding: chunked"], chunked)],
  ["both lengths, the other way round", framed(["Transfer-Encoding: chunked", `Content-Length: ${size}`], chunked)],
  [
    "both lengths, the shorter one hiding a request",
    framed(["Content-Length: 5", "Transfer-Encoding: chunked"], "0\r\n\r\n"),
  ],
  ["two equal lengths", framed([`Content-Length: ${size}`, `Content-Length: ${size}`], first)],
  ["two different lengths", framed([`Content-Length: ${size}`, "Content-Length: 0"], first)],
  ["a list of lengths", framed([`Content-Length: ${size}, ${size}`], first)],
  ["a signed length", framed([`Content-Length: +${size}`], first)],
  ["a negative length", framed(["Content-Length: -1"], first)],
  ["a length in hex", framed([`Content-Length: 0x${size.toString(16)}`], first)],
  ["a length that overflows", framed(["Content-Length: 18446744073709551617"], first)],
  ["an empty length", framed(["Content-Length:"], first)],
  ["a length with a space inside", framed(["Content-Length: 1 0"], first)],
  ["a coding before chunked", framed(["Transfer-Encoding: gzip, chunked"], chunked)],
  ["chunked in HTTP/1.0", framed(["Transfer-Encoding: chunked"], chunked).replace("HTTP/1.1", "HTTP/1.0")],
  ["a coding after chunked", framed(["Transfer-Encoding: chunked, identity"], chunked)],
  ["chunked twice", framed(["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], chunked)],
  ["chunked twice in a list", framed(["Transfer-Encoding: chunked, chunked"], chunked)],
  ["an unknown coding", framed(["Transfer-Encoding: xchunked"], chunked)],
  ["a quoted coding", framed(['Transfer-Encoding: "chunked"'], chunked)],
  ["a coding with a vertical tab", framed(["Transfer-Encoding: \vchunked"], chunked)],
  ["no coding", framed(["Transfer-Encoding:"], chunked)],
  ["a folded line", framed(["Transfer-Encoding:", " chunked"], chunked)],
  ["a folded line with a tab", framed([`Content-Length: ${size}`, "X-A: b", "\tc"], first)],
  ["a space before the colon", framed(["Transfer-Encoding : chunked"], chunked)],
  ["a tab before the colon", framed([`Content-Length\t: ${size}`], first)],
  ["a space before the name", framed([" Transfer-Encoding: chunked"], chunked)],
  ["a name with a space", framed([`Content Length: ${size}`, `Content-Length: ${size}`], first)],
  ["a name with a NUL", framed([`Content-Length\0: ${size}`], first)],
  ["a value with a NUL", framed(["X-A: a\0b", `Content-Length: ${size}`], first)],
  ["a line without colon", framed(["Transfer-Encoding", `Content-Length: ${size}`], first)],
  ["an empty name", framed([": chunked", `Content-Length: ${size}`], first)],
  ["a bare line feed after a header", framed([`X-A: b\nContent-Length: ${size}`], first)],
  ["bare line feeds throughout", framed([`Content-Length: ${size}`], first).replaceAll("\r\n", "\n")],
  [
    "a bare carriage return in a header",
    framed([`X-A: b\rTransfer-Encoding: chunked`, `Content-Length: ${size}`], first),
  ],
  ["a bare line feed before the body", framed([`Content-Length: ${size}`], first).replace("\r\n\r\n", "\r\n\n")],
  ["a chunk size in words", framed(["Transfer-Encoding: chunked"], `five\r\n${first}\r\n0\r\n\r\n`)],
  ["a signed chunk size", framed(["Transfer-Encoding: chunked"], `+${chunked}`)],
  ["a negative chunk size", framed(["Transfer-Encoding: chunked"], `-1\r\n${first}\r\n0\r\n\r\n`)],
  ["a chunk size with 0x", framed(["Transfer-Encoding: chunked"], `0x${chunked}`)],
  ["a chunk size that overflows", framed(["Transfer-Encoding: chunked"], `fffffffffffffffff\r\n${first}\r\n0\r\n\r\n`)],
  ["a chunk size with a space", framed(["Transfer-Encoding: chunked"], chunked.replace("\r\n", " \r\n"))],
  ["a chunk that ends with a bare line feed", framed(["Transfer-Encoding: chunked"], chunked.replace("\r\n", "\n"))],
  ["a chunk longer than its size", framed(["Transfer-Encoding: chunked"], `5\r\n${first}\r\n0\r\n\r\n`)],
  [
    "a chunk extension with a bare line feed",
    framed(["Transfer-Encoding: chunked"], chunked.replace("\r\n", ";a\nb\r\n")),
  ],
  ["another version", framed([`Content-Length: ${size}`], first).replace("HTTP/1.1", "HTTP/1.2")],
  ["a tab in the request line", framed([`Content-Length: ${size}`], first).replace("POST /", "POST\t/")],
  ["a method in lower case", framed([`Content-Length: ${size}`], first).replace("POST", "post")],
  ["an unknown method", framed([`Content-Length: ${size}`], first).replace("POST", "SMUGGLE")],
];

/** Well framed, and therefore two requests that everyone counts alike. */
const pipeline = framed([`Content-Length: ${size}`], first) + smuggled;

describe("a request that two readers could frame differently", () => {
  let world: World;
  before(async () => {
    world = await openWorld();
    await post(world, echoCall());
  });
  after(() => world.stop());

  for (const [what, bytes] of table) {
    it(`refuses ${what}, closes, and runs nothing of what follows [S21]`, async () => {
      const effects = await effectsOf(world, async () => {
        const { bytes: said, closed } = await sendBytes(world.gateway.url, bytes + smuggled, 5_000);
        const statuses = readResponses(said).map(({ status }) => status);
        expect(closed).to.equal(true);
        expect(statuses).to.deep.equal([400]);
      });
      expect(effects).to.deep.equal({ calls: 0, records: 0 });
    });
  }

  it("keeps a whole request in a body for what it is: data [S21]", async () => {
    const args = JSON.stringify({ text: smuggled });
    const effects = await effectsOf(world, () => post(world, echoCall(args)));
    expect(effects).to.deep.equal({ calls: 1, records: 2 });
    const call = JSON.parse((await world.upstream.calls()).at(-1)?.body ?? "{}");
    expect(call.params.arguments).to.deep.equal({ text: smuggled });
  });

  it("runs a second request that everyone sees, once, and answers in order", async () => {
    const last = `${pipeline}GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    const effects = await effectsOf(world, async () => {
      const { bytes } = await sendBytes(world.gateway.url, last);
      const bodies = readResponses(bytes).map(({ body }) => body);
      expect(bodies).to.have.length(3);
      expect(bodies[0]).to.contain("first");
      expect(bodies[1]).to.contain("smuggled");
      expect(bodies[2]).to.contain('"status":"ok"');
    });
    expect(effects).to.deep.equal({ calls: 2, records: 4 });
  });

  it("takes no second request behind a refused one for part of the same [S21]", async () => {
    const refused = framed([`Content-Length: ${size}`], first).replace(keys.operator, "wrong-key");
    const effects = await effectsOf(world, async () => {
      const { bytes } = await sendBytes(
        world.gateway.url,
        refused + smuggled.replace(keys.operator, "wrong-key"),
        1_000,
      );
      expect(readResponses(bytes).map(({ status }) => status)).to.deep.equal([401, 401]);
    });
    expect(effects).to.deep.equal({ calls: 0, records: 0 });
  });
});
