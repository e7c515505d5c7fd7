import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { until } from "../support/event-stream.ts";
import { allowEverything } from "../support/pack.ts";
import { Servers } from "./servers.ts";
import { tableHead, tableRow } from "./table.ts";
import { benchHeaders, startGoverned } from "./target.ts";

/**
 * How long one large request holds the event loop: calls of the largest body, whose server answers with all of it again; model
 * requests; and calls whose server answers with more, in each way that it can. Prints the longest turn of some of each kind, whole and
 * without collections of garbage or waiting for a processor; asserts nothing.
 */
const times = Number(process.env.BENCH_CALLS ?? 8);
const recorder = new URL("../fixture/turn-recorder.js", import.meta.url).href;
const servers = new Servers();
const provider = await servers.start("model-server.js");
const large = await servers.start("large-server.js");
const program = fileURLToPath(new URL("large-server.js", import.meta.url));

const config = `
upstreams:
  - { name: json, transport: http, url: "${large.origin}/mcp", tool_prefix: "json_", connection: shared }
  - { name: stream, transport: http, url: "${large.origin}/stream", tool_prefix: "stream_", connection: shared }
  - { name: process, transport: stdio, command: "${process.execPath}", args: ["${program}", stdio], tool_prefix: "process_", connection: shared }
providers:
  - { name: open, type: openai, base_url: "${provider.origin}/v1", models: [bench] }
model_gateway: { routes: [{ model: bench, providers: [{ name: open }] }] }
policy: { packs: [{ path: packs/open }] }
`;

/** What is sent: a path below the gateway port, and a body. */
type Sent = readonly [path: string, body: string];

const membersOf = (count: number, name: (at: number) => string): string =>
  `{${Array.from({ length: count }, (_, at) => `"${name(at)}":"v"`)}}`;
const callOf = (name: string, args: string): Sent => [
  "/mcp",
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`,
];
const call = (args: string): Sent => callOf("json_echo", args);
const ask = (messages: readonly object[], more = ""): Sent => [
  "/v1/chat/completions",
  `{"model":"bench","messages":${JSON.stringify(messages)}${more}}`,
];
const kinds: Readonly<Record<string, Sent>> = {
  "call: one text": call(`{"text":"${"lorem ipsum dolor ".repeat(230_000)}"}`),
  "call: a text of escapes": call(`{"text":"${"lor\\n\\u00e9 ip ".repeat(250_000)}"}`),
  "call: a text of other scripts": call(`{"text":"${"żółć €漢字 ".repeat(190_000)}"}`),
  "call: 9,900 strings": call(`{"list":[${`"${"abcdefghij".repeat(41)}",`.repeat(9_900)}"x"]}`),
  "call: 9,900 members in no order": call(membersOf(9_900, (at) => `m-${at}-${"n".repeat(398)}`)),
  "model: one message": ask([{ role: "user", content: "lorem ipsum dolor ".repeat(230_000) }]),
  "model: 20,000 messages": ask(
    Array.from({ length: 20_000 }, (_, at) => ({
      role: at % 2 === 0 ? "user" : "assistant",
      content: "lorem ".repeat(26),
    })),
  ),
  "model: 50,000 members in five objects": ask(
    [{ role: "user", content: "x" }],
    `,"metadata":[${Array.from({ length: 5 }, () => membersOf(9_999, (at) => `m-${at}-${"n".repeat(60)}`))}]`,
  ),
  "model: 45,000 empty objects": ask([{ role: "user", content: "x" }], `,"metadata":[${"{},".repeat(44_999)}{}]`),
};
for (const from of ["json", "stream", "process"]) {
  for (const kind of ["text", "rows", "members"]) {
    const wanted = JSON.stringify({ kind, megabytes: kind === "text" ? 14 : 4 });
    Object.assign(kinds, { [`answer, ${from}: ${kind}`]: callOf(`${from}_give`, wanted) });
  }
}

const gateway = await startGoverned(config, {
  files: allowEverything("packs/open"),
  env: { NODE_OPTIONS: `--import ${recorder}` },
});
try {
  process.stdout.write(`node ${process.version}, ${times} of each\n\n`);
  process.stdout.write(
    tableHead(["what", "bytes sent", "received", "longest turn, ms", "without garbage or waiting, ms"]),
  );
  for (const [kind, [path, body]] of Object.entries(kinds)) {
    const sent = Buffer.from(body);
    // The first make V8 compile what the others run.
    const received = await sendAll(path, sent);
    const { wholeMs, ownMs } = await turnsOf(() => sendAll(path, sent));
    process.stdout.write(tableRow([kind, sent.length, received, wholeMs.toFixed(1), ownMs.toFixed(1)]));
  }
} finally {
  await gateway.stop();
  servers.stop();
}

/** Returns the length of an answer. */
async function sendAll(path: string, body: Buffer): Promise<number> {
  let received = 0;
  for (let time = 0; time < times; time++) {
    const headers = { ...benchHeaders, "content-type": "application/json" };
    const response = await fetch(gateway.url + path, { method: "POST", headers, body });
    const text = await response.text();
    if (response.status !== 200 || /"(isError":true|error":)/.test(text)) throw new Error(`got ${text.slice(0, 500)}`);
    received = text.length;
    await sleep(100);
  }
  return received;
}

interface LongestTurn {
  readonly wholeMs: number;
  readonly ownMs: number;
}

/** Measures the gateway's turns while `work` goes on. */
async function turnsOf(work: () => Promise<unknown>): Promise<LongestTurn> {
  const linesOf = (): string[] => gateway.stderr().match(/^\{"event":"turns".*$/gm) ?? [];
  const before = linesOf().length;
  gateway.process.kill("SIGUSR2");
  await work();
  gateway.process.kill("SIGUSR2");
  const line = await until(async () => linesOf()[before]);
  return JSON.parse(line as string) as LongestTurn;
}
