import { generateKeyPairSync } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { tests as conformance } from "@bufbuild/cel-spec/testdata/conformance.js";
import type { SerializedIncrementalTestSuite } from "@bufbuild/cel-spec/testdata/tests.js";
import { expect } from "chai";
import { parse as parseYaml } from "yaml";
import { canonicalJson } from "../../core/action/canonical-json.ts";
import { GatewayError } from "../../core/action/error.ts";
import { isJsonObject, type Json } from "../../core/action/json.ts";
import { readJsonRpc } from "../../core/action/json-rpc.ts";
import type { ModelApi } from "../../core/action/model-api.ts";
import { SigningKey, VerifyingKey } from "../../core/action/signing-key.ts";
import { parseStrictJson } from "../../core/action/strict-json.ts";
import { evidenceRules } from "../../core/compose/evidence-rules.ts";
import { parseDocument, plainValue } from "../../core/config/document.ts";
import { FaultList } from "../../core/config/fault.ts";
import { verifyBundle } from "../../core/evidence/bundle/verify.ts";
import { isSignedBy, parseCheckpoint, parseNote } from "../../core/evidence/tree/checkpoint.ts";
import { readReference, signReference } from "../../core/manifest/reference.ts";
import { ModuleFault } from "../../core/plugin/wasm/binary.ts";
import { meterModule } from "../../core/plugin/wasm/meter.ts";
import { parseModule } from "../../core/plugin/wasm/module-parser.ts";
import { EventReader, type WireEvent } from "../../core/provider/wire/event-reader.ts";
import { StreamReader } from "../../core/provider/wire/stream-reader.ts";
import { headerOf, readToken, writeToken } from "../../core/ticket/claims.ts";
import { type SseEvent, SseReader } from "../../core/upstream/sse-reader.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { makeAction } from "../support/action.ts";
import { CelComparison } from "../support/cel-oracle/comparison.ts";
import { cutBytes } from "../support/chunk.ts";
import { bundleOf, checkpointOf } from "../support/evidence-world.ts";
import { samplePack, scopeOf } from "../support/expression.ts";
import { goodChain, goodWitness, trustedKeys } from "../support/forgery.ts";
import { fuzzInputs, fuzzSeed, maxInputMs, processorMs, type Random, randomFrom } from "../support/fuzz.ts";
import { mutateInput } from "../support/input-mutation.ts";
import { ticketClaims } from "../support/ticket-claims.ts";

/** A parser of what strangers write. */
interface Subject {
  readonly seeds: readonly Buffer[];
  /** What means something to the parser. */
  readonly words: readonly string[];
  /** How much dearer an input is than one of the others, so that all take about as long. */
  readonly price?: number;
  /**
   * Reads an input. True where it was accepted, false where it was refused by an error that is meant for that. Throws where
   * it was accepted though it says something else than what was read.
   */
  readonly read: (input: Buffer, random: Random) => boolean;
}

const bounds = { depth: 64, nodes: 10_000, stringLength: 65_536, reader: "exact" } as const;
const signingKey = SigningKey.fromSeed(Buffer.alloc(32, 7));
const stranger = SigningKey.fromSeed(Buffer.alloc(32));
const nowSeconds = 1_800_000_000;

/** False where a call throws the error of a refusal, else what it returns. */
function unlessRefused(refusal: new (...args: never[]) => Error, read: () => boolean): boolean {
  try {
    return read();
  } catch (error) {
    if (error instanceof refusal) return false;
    throw error;
  }
}

function folder(path: string, ending: string): readonly Buffer[] {
  const names = readdirSync(join(repositoryRoot, path), { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(ending)).map((name) => readFileSync(join(repositoryRoot, path, name)));
}

/** How many members an accepted JSON text names, by its strings alone. */
function namedMembers(text: string): number {
  return Array.from(text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/gs)).filter(([, colon]) => colon !== undefined).length;
}

function membersOf(value: Json): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value).reduce<number>((sum, each) => sum + membersOf(each as Json), 0);
  return inner + (Array.isArray(value) ? 0 : Object.keys(value).length);
}

function readJson(input: Buffer): Json {
  const value = parseStrictJson(input, bounds);
  expect(membersOf(value)).to.equal(namedMembers(input.toString("utf8")));
  expect(JSON.parse(canonicalJson(value))).to.deep.equal(value);
  return value;
}

const rpc: readonly Json[] = [
  {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "read", arguments: { path: "/a\u00e9\ud83d\ude00" } },
  },
  { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: "t", progress: 0.5 } },
  { jsonrpc: "2.0", id: "a", result: { content: [{ type: "text", text: 'a "quoted"\n text' }] } },
  { jsonrpc: "2.0", id: null, error: { code: -32_600, message: "no", data: [1e21, -1, 1.5e-7] } },
];
const rpcMembers = new Set(["jsonrpc", "id", "method", "params", "result", "error"]);

/** The events of a stream that comes in these chunks; null where it is refused. */
function sseEvents(chunks: readonly Uint8Array[]): readonly SseEvent[] | null {
  const events: SseEvent[] = [];
  const reader = new SseReader(1_048_576, { onEvent: (event) => events.push(event), onEnd: () => undefined });
  const isRead = unlessRefused(GatewayError, () => {
    for (const chunk of chunks) reader.push(chunk);
    reader.end();
    return true;
  });
  return isRead ? events : null;
}

function wireEvents(chunks: readonly Uint8Array[]): readonly WireEvent[] | null {
  const events: WireEvent[] = [];
  const reader = new EventReader(1_048_576);
  const isRead = unlessRefused(GatewayError, () => {
    for (const chunk of chunks) events.push(...reader.push(chunk));
    events.push(...reader.end());
    return true;
  });
  return isRead ? events : null;
}

function randomChunks(input: Buffer, random: Random): readonly Uint8Array[] {
  const places = Array.from({ length: Math.ceil(random() * 40) }, () => Math.floor(random() * 65_536));
  return cutBytes(input, places);
}

/** Reads a stream of a model as each API has it. */
function readStream(input: Buffer, random: Random): boolean {
  const events = wireEvents([input]);
  expect(wireEvents(randomChunks(input, random))).to.deep.equal(events);
  if (events === null) return false;
  expect(Buffer.concat(events.map(({ raw }) => raw)).equals(input)).to.equal(true);
  const apis: readonly ModelApi[] = ["chat", "messages", "responses"];
  return apis.map((api) => unlessRefused(GatewayError, () => isWhole(new StreamReader(api), events))).includes(true);
}

function isWhole(reader: StreamReader, events: readonly WireEvent[]): boolean {
  const steps = events.map((event) => reader.read(event));
  expect(isJsonObject(reader.body())).to.equal(true);
  return steps.some(({ terminal }) => terminal);
}

function readYaml(input: Buffer): boolean {
  const faults = new FaultList("a.yaml");
  const text = input.toString("utf8");
  const node = parseDocument("a.yaml", text, faults);
  for (const { line, column } of faults.all) expect([line, column].every((each) => Number(each) >= 1)).to.equal(true);
  if (node === undefined || !faults.isEmpty) return false;
  expect(plainValue(node)).to.deep.equal(parseYaml(text));
  return true;
}

function expressionsOf(suite: SerializedIncrementalTestSuite): readonly string[] {
  return [...(suite.tests ?? []).map(({ original: { expr } }) => expr), ...(suite.suites ?? []).flatMap(expressionsOf)];
}

const comparison = new CelComparison(scopeOf(["input"]));
const action = makeAction({
  arguments: { path: "/etc/passwd", count: 3, list: [1, "a", null], map: { a: { b: true } } },
});

function readExpression(input: Buffer): boolean {
  const compare = comparison.prepare(input.toString("utf8"));
  if (compare === undefined) return false;
  const { compiled, oracle } = compare(action, samplePack);
  expect(compiled).to.deep.equal(oracle);
  return true;
}

function readModule(input: Buffer): boolean {
  return unlessRefused(ModuleFault, () => {
    const { bytes } = meterModule(parseModule(input), 16);
    if (WebAssembly.validate(input)) expect(WebAssembly.validate(bytes)).to.equal(true);
    return WebAssembly.validate(bytes);
  });
}

const goodBundle = bundleOf(goodChain);

function readBundle(input: Buffer): boolean {
  const keys = trustedKeys.map((text) => VerifyingKey.parse(text) as VerifyingKey);
  const trust = { keys, rules: evidenceRules, witness: goodWitness, nowMs: nowSeconds * 1_000 };
  const { verdict } = verifyBundle(input, trust);
  const isAccepted = verdict !== "invalid" && verdict !== "incomplete";
  if (isAccepted) expect(input.equals(goodBundle)).to.equal(true);
  return isAccepted;
}

function readNote(input: Buffer): boolean {
  const text = input.toString("utf8");
  const note = parseNote(text);
  if (note === undefined) return false;
  const lines = note.signatures.map(({ name, keyHash, signature }) => {
    return `— ${name} ${Buffer.concat([keyHash, signature]).toString("base64")}\n`;
  });
  expect(`${note.text}\n${lines.join("")}`).to.equal(text);
  const checkpoint = parseCheckpoint(text);
  const known = notes.find((each) => parseNote(each)?.text === note.text);
  const isOurs = trustedKeys.some((key) =>
    note.signatures.some(({ name }) => isSignedBy(note, { name, key: VerifyingKey.parse(key) as VerifyingKey })),
  );
  if (isOurs) expect(known).to.not.equal(undefined);
  return checkpoint !== undefined;
}

const notes: readonly string[] = [1, 10, 17].map((size) => checkpointOf(goodChain, size));

const token = writeToken(ticketClaims(nowSeconds, nowSeconds + 600), signingKey);

function readTicket(input: Buffer): boolean {
  const text = input.toString("utf8");
  const find = (header: string): { key: VerifyingKey; owner: string } | undefined =>
    header === headerOf(signingKey.id) ? { key: signingKey.public, owner: "a" } : undefined;
  const isRead = readToken(text, find, stranger.public) !== undefined;
  if (isRead) expect(text).to.equal(token);
  return isRead;
}

const taskKeys = generateKeyPairSync("ed25519");
const claims = { tenant: "acme", principal: "agent", task: "nightly", manifest: "sha256:00", exp: nowSeconds + 600 };
const reference = signReference(claims, taskKeys.privateKey);

function readTask(input: Buffer): boolean {
  const text = input.toString("utf8");
  const signers = [{ id: "owner", tenant: "acme", key: taskKeys.publicKey }];
  return unlessRefused(GatewayError, () => {
    readReference(text, signers, "acme", nowSeconds * 1_000);
    expect(text).to.equal(reference);
    return true;
  });
}

const jsonWords = [
  '"a":',
  '"__proto__":',
  "{}",
  "[]",
  "[[[[",
  "-0",
  "1e400",
  "\\u0000",
  "\\ud800",
  "9007199254740993",
  "\ufeff",
  "\u0000",
];
const compactWords = ["=", "==", ".", "..", "A", "-", "_", "+", "/", "\n", " ", "%2e", "é"];

const subjects: Readonly<Record<string, Subject>> = {
  JSON: {
    seeds: rpc.map((each) => Buffer.from(JSON.stringify(each))),
    words: jsonWords,
    read: (input) => unlessRefused(GatewayError, () => readJson(input) !== undefined),
  },
  "JSON-RPC messages": {
    seeds: rpc.map((each) => Buffer.from(JSON.stringify(each))),
    words: [...jsonWords, '"id":null,', '"result":{},', '"method":"",', '"Method":"x",', '"params":[],', ","],
    read: (input) =>
      unlessRefused(GatewayError, () => {
        const value = readJson(input);
        const { message } = readJsonRpc(value);
        for (const [name, member] of Object.entries(message)) {
          expect(rpcMembers.has(name)).to.equal(true);
          expect(member).to.deep.equal((value as Readonly<Record<string, Json>>)[name]);
        }
        return true;
      }),
  },
  "event streams of upstreams": {
    seeds: folder("test/fixture/model", ".sse").map((each) => each.subarray(0, 2_048)),
    words: ["\n\n", "\r\n\r\n", "\r", ":", "data:", "data\n", "event: x\n", "id: \u0000\n", "retry: 5\n", "\ufeff"],
    read: (input, random) => {
      const events = sseEvents([input]);
      expect(sseEvents(randomChunks(input, random))).to.deep.equal(events);
      return events !== null;
    },
  },
  "streams of models": {
    seeds: folder("test/fixture/model", ".sse").map((each) => each.subarray(0, 8_192)),
    words: [
      "\n\n",
      "\r\n\r\n",
      "\r",
      ":",
      "data:",
      "data: [DONE]\n\n",
      "event: x\n",
      '"index":1',
      '"delta":{}',
      ...jsonWords,
    ],
    price: 4,
    read: readStream,
  },
  YAML: {
    seeds: folder("policy-packs", ".yaml").map((each) => each.subarray(0, 4_096)),
    words: [
      "&a ",
      "*a",
      "<<: ",
      "!!js/function ",
      "? ",
      "- ",
      "|\n",
      ">+2\n",
      "{a: ",
      "[",
      "%YAML 1.1\n",
      "---\n",
      "\t",
      "0o7",
      "yes",
      ": ",
    ],
    price: 10,
    read: readYaml,
  },
  CEL: {
    seeds: expressionsOf(conformance).map((each) => Buffer.from(each)),
    words: [
      "arguments.",
      "has(",
      ".exists(x, ",
      ".map(x, x)",
      ".matches('(a+)+$')",
      "[0]",
      "{'a': ",
      " ? ",
      " : ",
      "u",
      "-",
      "!",
      "b'",
      "r'",
      "\\x",
      "1e999",
    ],
    price: 2,
    read: readExpression,
  },
  "WebAssembly modules": {
    seeds: folder("plugins", "plugin.wasm"),
    words: ["\u0000asm", "\u0001", "\u000b", "\u007f"],
    price: 20,
    read: readModule,
  },
  "evidence bundles": {
    seeds: [goodBundle],
    words: ["\n", "\n\n", "\r\n", '"seq":1', "{}", ",", " ", "\u0000", "null"],
    price: 4,
    read: readBundle,
  },
  "notes of checkpoints": {
    seeds: notes.map((each) => Buffer.from(each)),
    words: ["\n\n", "\n", "— ", "- ", "+", "=", " ", "state ", "head ", "time ", "0", "\r", "\u2014"],
    read: readNote,
  },
  tickets: { seeds: [Buffer.from(token)], words: compactWords, price: 2, read: readTicket },
  "references to tasks": { seeds: [Buffer.from(reference)], words: compactWords, price: 2, read: readTask },
};

describe("what reads the words of strangers, over changed inputs", function () {
  this.timeout(600_000 + fuzzInputs(0) * 40);

  for (const [name, { seeds, words, price = 1, read }] of Object.entries(subjects)) {
    it(`never breaks, stays within its bounds and takes nothing for what it is not: ${name} (seed ${fuzzSeed})`, () => {
      const random = randomFrom(fuzzSeed);
      const inputs = Math.ceil(fuzzInputs(8_000) / price);
      const before = process.memoryUsage().rss;
      let accepted = 0;
      for (let round = 0; round < inputs; round++) {
        const input = mutateInput(seeds, words, random);
        const hint = `seed ${fuzzSeed}, round ${round}: ${input.subarray(0, 512).toString("latin1")}`;
        let isAccepted = false;
        try {
          expect(processorMs(() => (isAccepted = read(input, random)))).to.be.below(maxInputMs);
        } catch (cause) {
          throw new Error(hint, { cause });
        }
        if (isAccepted) accepted++;
      }
      expect(seeds.filter((seed) => read(seed, random)).length, "seeds that are accepted").to.be.above(0);
      expect(accepted, "changed inputs that are accepted").to.be.below(inputs);
      expect(process.memoryUsage().rss - before).to.be.below(400 * 1_048_576);
    });
  }
});
