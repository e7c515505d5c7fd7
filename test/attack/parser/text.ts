import { tests as conformance } from "@bufbuild/cel-spec/testdata/conformance.js";
import type { SerializedIncrementalTestSuite } from "@bufbuild/cel-spec/testdata/tests.js";
import { expect } from "chai";
import { parse as parseYaml } from "yaml";
import { canonicalJson } from "../../../core/action/canonical-json.ts";
import { decisions } from "../../../core/action/decision.ts";
import { GatewayError } from "../../../core/action/error.ts";
import { JoinedBytes } from "../../../core/action/joined-bytes.ts";
import { isJsonObject, type Json } from "../../../core/action/json.ts";
import { readJsonRpc } from "../../../core/action/json-rpc.ts";
import type { ModelApi } from "../../../core/action/model-api.ts";
import { parseStrictJson } from "../../../core/action/strict-json.ts";
import { parseDocument, plainValue } from "../../../core/config/document.ts";
import { FaultList } from "../../../core/config/fault.ts";
import { compilePack } from "../../../core/policy/pack.ts";
import { EventReader, type WireEvent } from "../../../core/provider/wire/event-reader.ts";
import { StreamReader } from "../../../core/provider/wire/stream-reader.ts";
import { assembleFolder } from "../../../core/trust/folder.ts";
import { acceptUnverified } from "../../../core/trust/verified-extension.ts";
import { type SseEvent, SseReader } from "../../../core/upstream/sse-reader.ts";
import { makeAction } from "../../support/action.ts";
import { CelComparison } from "../../support/cel-oracle/comparison.ts";
import { cutBytes } from "../../support/chunk.ts";
import { samplePack, scopeOf } from "../../support/expression.ts";
import type { Random } from "../../support/fuzz.ts";
import { allowEverything } from "../../support/pack.ts";
import { accepted, folder, reasonOf, refused, type Subject, unlessRefused } from "./subject.ts";

const bounds = { depth: 64, nodes: 10_000, stringLength: 65_536, reader: "exact" } as const;

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

/** The events of a stream that comes in these chunks, their data in one piece; null where it is refused. */
function sseEvents(chunks: readonly Uint8Array[]): readonly (SseEvent & { readonly data: Buffer })[] | null {
  const events: (SseEvent & { readonly data: Buffer })[] = [];
  const onEvent = ({ data, ...rest }: SseEvent): void => {
    events.push({ ...rest, data: data instanceof JoinedBytes ? data.bytes : data });
  };
  const reader = new SseReader(1_048_576, { onEvent, onEnd: () => undefined });
  const outcome = unlessRefused(GatewayError, () => {
    for (const chunk of chunks) reader.push(chunk);
    reader.end();
    return accepted;
  });
  return outcome === accepted ? events : null;
}

function wireEvents(chunks: readonly Uint8Array[]): readonly WireEvent[] | null {
  const events: WireEvent[] = [];
  const reader = new EventReader(1_048_576);
  const outcome = unlessRefused(GatewayError, () => {
    for (const chunk of chunks) events.push(...reader.push(chunk));
    events.push(...reader.end());
    return accepted;
  });
  return outcome === accepted ? events : null;
}

function randomChunks(input: Buffer, random: Random): readonly Uint8Array[] {
  const places = Array.from({ length: Math.ceil(random() * 40) }, () => Math.floor(random() * 65_536));
  return cutBytes(input, places);
}

/** Reads a stream of a model as each API has it. */
function readStream(input: Buffer, random: Random): string {
  const events = wireEvents([input]);
  expect(wireEvents(randomChunks(input, random))).to.deep.equal(events);
  if (events === null) return refused;
  expect(Buffer.concat(events.map(({ raw }) => raw)).equals(input)).to.equal(true);
  const apis: readonly ModelApi[] = ["chat", "messages", "responses"];
  const outcomes = apis.map((api) => unlessRefused(GatewayError, () => readWhole(new StreamReader(api), events)));
  return outcomes.includes(accepted) ? accepted : outcomes.join("; ");
}

function readWhole(reader: StreamReader, events: readonly WireEvent[]): string {
  const steps = events.map((event) => reader.read(event));
  expect(isJsonObject(reader.body())).to.equal(true);
  return steps.some(({ terminal }) => terminal) ? accepted : "no end";
}

function readYaml(input: Buffer): string {
  const faults = new FaultList("a.yaml");
  const text = input.toString("utf8");
  const node = parseDocument("a.yaml", text, faults);
  for (const { line, column } of faults.all) expect([line, column].every((each) => Number(each) >= 1)).to.equal(true);
  if (node === undefined || !faults.isEmpty) return reasonOf(Error, new Error(faults.all[0]?.message ?? refused));
  expect(plainValue(node)).to.deep.equal(parseYaml(text));
  return accepted;
}

function expressionsOf(suite: SerializedIncrementalTestSuite): readonly string[] {
  return [...(suite.tests ?? []).map(({ original: { expr } }) => expr), ...(suite.suites ?? []).flatMap(expressionsOf)];
}

const comparison = new CelComparison(scopeOf(["input"]));
const action = makeAction({
  arguments: { path: "/etc/passwd", count: 3, list: [1, "a", null], map: { a: { b: true } } },
});

function readExpression(input: Buffer): string {
  const compare = comparison.prepare(input.toString("utf8"));
  if (compare === undefined) return refused;
  const { compiled, oracle } = compare(action, samplePack);
  expect(compiled).to.deep.equal(oracle);
  return accepted;
}

const packManifest = allowEverything("pack")["pack/pack.yaml"] ?? "";
const packRules = `rules:
  - id: open.delete
    title: Nothing is deleted
    decision: block
    severity: high
    risk: 80
    match: { phase: [input], tool: ["delete_*", read_note], capability: read }
    when: args.path.startsWith("/etc") && has(args.count)
    unless: args.list.exists(x, x == 2)
    message: notes are kept
  - id: open.all
    title: Everything else is reviewed
    decision: review
    severity: low
    risk: 1
    match: { phase: input }
    message: somebody looks at it
`;

/** Compiles a pack with these rules. What it takes judges an action without a fault of its own. */
async function readPack(input: Buffer): Promise<string> {
  const files = new Map([
    ["pack.yaml", Buffer.from(packManifest)],
    ["rules/all.yaml", input],
  ]);
  const extension = acceptUnverified(assembleFolder("pack", "pack", files), null);
  const rest = {
    path: "pack",
    mode: "enforce",
    settings: {},
    shadowRules: [],
    clock: () => 1_800_000_000_000,
  } as const;
  try {
    const { pack } = await compilePack({ extension, ...rest }, false);
    const { decision } = await pack.policy.evaluate(action);
    expect(decision).to.be.oneOf([...decisions, "abstain"]);
    return accepted;
  } catch (error) {
    return reasonOf(GatewayError, error);
  }
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

const yamlWords = [
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
];
const celWords = [
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
];

/** Parsers of requests, answers, configuration and policies. */
export const textSubjects: Readonly<Record<string, Subject>> = {
  JSON: {
    seeds: rpc.map((each) => Buffer.from(JSON.stringify(each))),
    words: jsonWords,
    read: (input) =>
      unlessRefused(GatewayError, () => {
        readJson(input);
        return accepted;
      }),
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
        return accepted;
      }),
  },
  "event streams of upstreams": {
    seeds: folder("test/fixture/model", ".sse").map((each) => each.subarray(0, 2_048)),
    words: ["\n\n", "\r\n\r\n", "\r", ":", "data:", "data\n", "event: x\n", "id: \u0000\n", "retry: 5\n", "\ufeff"],
    read: (input, random) => {
      const events = sseEvents([input]);
      expect(sseEvents(randomChunks(input, random))).to.deep.equal(events);
      const outcomes = events?.map(({ data }) => {
        return unlessRefused(GatewayError, () => {
          parseStrictJson(data, bounds);
          return accepted;
        });
      });
      return outcomes?.find((outcome) => outcome !== accepted) ?? (outcomes === undefined ? refused : accepted);
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
    words: yamlWords,
    price: 10,
    read: readYaml,
  },
  "rules of packs": {
    seeds: [packRules, allowEverything("pack")["pack/rules/all.yaml"] ?? ""].map((each) => Buffer.from(each)),
    words: [
      ...yamlWords,
      ...celWords,
      "decision: allow\n",
      "    unless: true\n",
      "mode: shadow\n",
      "redact: ",
      "args.",
    ],
    price: 20,
    read: readPack,
  },
  CEL: {
    seeds: expressionsOf(conformance).map((each) => Buffer.from(each)),
    words: celWords,
    price: 2,
    read: readExpression,
  },
};
