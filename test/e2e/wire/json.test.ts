import { expect } from "chai";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { echoCall, effectsOf, keys, nothing, openWorld, post, type World } from "./world.ts";

const duplicates = [
  '{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"echo"}}',
  '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"echo"}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{},"params":{"name":"echo"}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deep","name":"echo"}}',
  echoCall('{"a":1,"a":1}'),
  echoCall('{"a":1,"\\u0061":2}'),
  echoCall('{"\\u0061":1,"\\u0061":2}'),
  echoCall('{"":1,"":2}'),
  echoCall('{"__proto__":1,"__proto__":2}'),
  echoCall('[{"a":[[{"b":{"c":1,"d":2,"c":3}}]]}]')
    .replace('"arguments":[', '"arguments":{"x":[')
    .replace(/\]\}\}$/, "]}}}"),
  echoCall(`${'{"a":'.repeat(40)}{"b":1,"b":2}${"}".repeat(40)}`),
];

const unfitNumbers = [
  "9007199254740992",
  "-9007199254740992",
  "9007199254740993",
  "1e400",
  "-1e400",
  "1e20",
  "1e-400",
  "0.000e-1000001".replace("0.000", "0.001"),
  "-0",
  "-0.0",
  "-0e5",
  "01",
  "+1",
  ".5",
  "1.",
  "0x10",
  "NaN",
  "Infinity",
  "1_000",
];

const unfitBytes: readonly [string, Uint8Array][] = [
  ["an overlong slash", splice([0xc0, 0xaf])],
  ["a lone continuation byte", splice([0x80])],
  ["a cut sequence", splice([0xe2, 0x82])],
  ["an encoded surrogate", splice([0xed, 0xa0, 0x80])],
  ["a code point beyond the last", splice([0xf4, 0x90, 0x80, 0x80])],
  ["Latin-1", splice([0xe9])],
  ["a raw NUL in a string", splice([0])],
  ["a NUL behind the message", Buffer.from(`${echoCall()}\0`)],
  ["a byte order mark", Buffer.from(`\ufeff${echoCall()}`)],
  ["UTF-16", Buffer.from(echoCall(), "utf16le")],
  ["UTF-16 with a byte order mark", Buffer.from(`\ufeff${echoCall()}`, "utf16le")],
  ["an escaped NUL", Buffer.from(echoCall('{"a":"\\u0000"}'))],
  ["an escaped NUL in a key", Buffer.from(echoCall('{"a\\u0000":1}'))],
  ["a lone high surrogate", Buffer.from(echoCall('{"a":"\\ud83d"}'))],
  ["a lone low surrogate", Buffer.from(echoCall('{"a":"x\\ude00"}'))],
  ["surrogates in the wrong order", Buffer.from(echoCall('{"a":"\\ude00\\ud83d"}'))],
];

describe("the body of a message", () => {
  let world: World;
  before(async () => {
    world = await openWorld();
    await post(world, echoCall());
  });
  after(() => world.stop());

  async function refuses(what: string, body: string | Uint8Array): Promise<void> {
    const { status, body: text } = await post(world, body);
    expect(status, what).to.equal(400);
    expect(JSON.parse(text).error.data.code, what).to.equal("MALFORMED_JSON");
  }

  /** What the upstream got for these arguments, as text. */
  async function forwarded(args: string): Promise<string> {
    const response = await post(world, echoCall(args));
    expect(response.status).to.equal(200);
    const body = (await world.upstream.calls()).at(-1)?.body ?? "";
    return /"arguments":(.*)\}\}$/s.exec(body)?.[1] ?? "";
  }

  it("refuses a key that comes twice, however deep and however spelled [S13]", async () => {
    const effects = await effectsOf(world, async () => {
      for (const body of duplicates) await refuses(body, body);
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("refuses numbers that a double cannot hold, and what is no number at all [S15]", async () => {
    const effects = await effectsOf(world, async () => {
      for (const number of unfitNumbers) await refuses(number, echoCall(`{"n":${number}}`));
      for (const number of unfitNumbers) await refuses(number, echoCall("{}", number));
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("passes on the very number that was judged [S15]", async () => {
    expect(await forwarded('{"n":9007199254740991}')).to.equal('{"n":9007199254740991}');
    expect(await forwarded('{"n":-9007199254740991}')).to.equal('{"n":-9007199254740991}');
    expect(await forwarded('{"n":[0,0.5,-1.5e-7,5e-324]}')).to.equal('{"n":[0,0.5,-1.5e-7,5e-324]}');
  });

  it("takes two spellings of one number for one action: same fingerprint, same bytes [S15]", async () => {
    const spellings = ["1", "1.0", "10e-1", "0.1E1"];
    for (const spelling of spellings) expect(await forwarded(`{"spelled":${spelling}}`)).to.equal('{"spelled":1}');
    const reader = new EvidenceReader(world.gateway.adminUrl, keys.operator);
    const decisions = (await reader.recordsOf()).filter(({ kind }) => kind === "decision");
    const prints = decisions.slice(-spellings.length).map(({ action }) => action.fingerprint);
    expect(new Set(prints).size).to.equal(1);
    await forwarded('{"spelled":2}');
    const last = (await reader.recordsOf()).filter(({ kind }) => kind === "decision").at(-1);
    expect(prints).not.to.include(last?.action.fingerprint);
  });

  it("refuses what is not plain UTF-8, lone surrogates, a byte order mark and NUL [S16]", async () => {
    const effects = await effectsOf(world, async () => {
      for (const [what, body] of unfitBytes) await refuses(what, body);
    });
    expect(effects).to.deep.equal(nothing);
    expect(await forwarded('{"a":"\\ud83d\\ude00 é \\u2028"}')).to.equal('{"a":"😀 é \u2028"}');
  });

  it("refuses nesting beyond the limit, and passes on what just fits [S17]", async () => {
    const effects = await effectsOf(world, async () => {
      for (const levels of [65, 5_000, 10_000, 1_000_000]) {
        for (const [open, close] of [
          ["[", "]"],
          ['{"a":', "}"],
        ] as const) {
          const args = `{"x":${open.repeat(levels)}1${close.repeat(levels)}}`;
          const response = await post(world, echoCall(args).slice(0, 4_000_000));
          expect(response.status, `${levels} levels`).to.equal(400);
          expect(JSON.parse(response.body).error.data.code).to.equal("JSON_BOUND");
        }
      }
    });
    expect(effects).to.deep.equal(nothing);
    const deepest = `{"x":${"[".repeat(61)}${"]".repeat(61)}}`;
    expect(await forwarded(deepest)).to.equal(deepest);
  });

  it("answers an upstream's reply of 10,000 levels as nonsense, and goes on serving [S17]", async () => {
    const deep = await post(world, echoCall().replace('"echo"', '"deep"'));
    expect(deep.status).to.equal(200);
    const { error } = JSON.parse(deep.body);
    expect(error.code).to.equal(1502);
    expect(error.message).to.match(/^invalid response from upstream: JSON exceeds a bound: expected at most 64 levels/);
    expect((await post(world, echoCall())).status).to.equal(200);
  });

  it("keeps `__proto__`, `constructor` and `prototype` as plain data, and no prototype changes [S18]", async () => {
    const bait = '{"polluted":"yes","isError":true,"status":500,"anonymous":true,"toJSON":1}';
    const args = `{"__proto__":${bait},"constructor":{"prototype":${bait}},"prototype":[{"__proto__":null}]}`;
    expect(await forwarded(args)).to.equal(args);
    const meta = `{"__proto__":${bait},"progressToken":1}`;
    const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":${meta}},"__proto__":${bait}}`;
    expect((await post(world, message)).status).to.equal(200);
    expect(await forwarded("{}")).to.equal("{}");
    const { status, body, headers } = await post(world, '{"jsonrpc":"2.0","id":7,"method":"ping"}');
    expect({ status, body }).to.deep.equal({ status: 200, body: '{"jsonrpc":"2.0","id":7,"result":{}}' });
    expect([...headers.keys()]).not.to.include("polluted");
  });
});

/** A call whose one string holds these bytes. */
function splice(bytes: readonly number[]): Uint8Array {
  const [before = "", after = ""] = echoCall('{"a":"|"}').split("|");
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]);
}
