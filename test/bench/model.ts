import type { RunningGateway } from "../support/gateway.ts";
import { type Cell, type CellLoad, costCells, costColumns, measureInTurn, warmUp } from "./cell.ts";
import { Servers } from "./servers.ts";
import { measurePace, type Pace } from "./stream-pace.ts";
import { tableHead, tableRow } from "./table.ts";
import { bareTarget, baselinePolicy, benchHeaders, governedTarget, startGoverned } from "./target.ts";

/**
 * Governed model requests beside their anchor, in one run on loopback: a bare Koa and undici pass-through, and the gateway
 * with the baseline pack, rules that read what models are asked and what they answer, and durable evidence. It prints and
 * asserts nothing.
 */
const seconds = Number(process.env.BENCH_SECONDS ?? 2);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const warmRequests = Number(process.env.BENCH_WARM ?? 15_000);
/** A stream of 200 chunks runs most of its code 200 times. */
const warmStreams = Math.ceil(warmRequests / 20);
const pacedStreams = Number(process.env.BENCH_STREAMS ?? 10);
const apis = {
  chat: { path: "/v1/chat/completions", model: "chat-model", token: /"content":"\s?token/g },
  messages: { path: "/v1/messages", model: "messages-model", token: /"text":"\s?token/g },
} as const;
type BenchApi = keyof typeof apis;
const pack = `apiVersion: gateway/v1
kind: PolicyPack
metadata: { name: bench, version: 1.0.0, title: Bench, description: Reads everything., authors: [bench], license: Apache-2.0 }
namespace: bench
rules: ["rules/*.yaml"]
`;
const rules = `rules:
  - { id: bench.asked, title: Keys are not told, decision: block, match: { phase: input }, message: a key,
      when: 'leaves(args).exists(leaf, leaf.text.matches("AKIA[0-9A-Z]{16}"))' }
  - { id: bench.answered, title: Keys are not answered, decision: block, match: { phase: output }, message: a key,
      when: 'leaves(output).exists(leaf, leaf.text.matches("AKIA[0-9A-Z]{16}"))' }
`;

const servers = new Servers();
const provider = await servers.start("model-server.js");
const bare = await servers.start("pass-through.js", provider.origin);
process.stdout.write(
  `node ${process.version}, answers of 200 tokens, each target warmed by ${warmRequests} whole requests and ${warmStreams} ` +
    `streams of each API, then ${seconds} s a cell, median of ${rounds} rounds in turn\n\n`,
);
await printLoads();
await printPaces();
servers.stop();

async function printLoads(): Promise<void> {
  const gateway = await startModelGateway("", 256);
  const targets = [bareTarget(bare), governedTarget("governed", gateway)] as const;
  const speed = ["requests/s", "of bare", "p50 ms", "p99 ms", "first token ms"];
  process.stdout.write(tableHead(["API", "streamed", "connections", "target", ...speed, ...costColumns, "errors"]));
  for (const api of ["chat", "messages"] as const) {
    for (const stream of [false, true]) {
      const load = loadOf(api, stream);
      for (const target of targets) await warmUp(target, stream ? warmStreams : warmRequests, load);
      for (const connections of [1, 16, 64]) {
        const cells = await measureInTurn(targets, rounds, { ...load, connections, seconds });
        const [anchor] = cells as readonly [Cell, Cell];
        for (const [index, cell] of cells.entries()) {
          const name = targets[index]?.name ?? "";
          process.stdout.write(tableRow([api, stream ? "yes" : "no", connections, name, ...cellsOf(cell, anchor)]));
        }
      }
    }
  }
  await gateway.stop();
}

function loadOf(api: BenchApi, stream: boolean): Omit<CellLoad, "connections"> {
  const body = (n: number): string => requestBody(api, stream, n);
  return { path: apis[api].path, body, ...(stream ? { firstToken: "token0" } : {}) };
}

function cellsOf(cell: Cell, anchor: Cell): readonly (string | number)[] {
  const { requestsPerSecond, p50Ms, p99Ms, firstTokenMs, errors } = cell;
  const ratio = (requestsPerSecond / anchor.requestsPerSecond).toFixed(2);
  const first = firstTokenMs === 0 ? "" : firstTokenMs.toFixed(2);
  const speed = [Math.round(requestsPerSecond), ratio, p50Ms.toFixed(2), p99Ms.toFixed(2), first];
  return [...speed, ...costCells(cell, anchor), errors];
}

/** One stream at a time, its tokens 10 ms apart: what the gateway adds to their times over the bare pass-through. */
async function printPaces(): Promise<void> {
  process.stdout.write("\nTokens 10 ms apart; added over the bare pass-through, in ms:\n\n");
  process.stdout.write(tableHead(["API", "holdback bytes", "first token", "any token", "p99 between two"]));
  for (const holdback of [256, 0]) {
    const gateway = await startModelGateway("/paced", holdback);
    for (const api of ["chat", "messages"] as const) {
      const [through, own] = [await pace(api, `${bare.origin}/paced`), await pace(api, gateway.url)];
      const added = (of: keyof Pace): string => (own[of] - through[of]).toFixed(2);
      process.stdout.write(tableRow([api, holdback, added("firstTokenMs"), added("tokenMs"), added("p99GapMs")]));
    }
    await gateway.stop();
  }
}

function pace(api: BenchApi, origin: string): Promise<Pace> {
  const { path, token } = apis[api];
  const body = requestBody(api, true, 0);
  return measurePace({ url: origin + path, headers: benchHeaders, body, token, streams: pacedStreams });
}

function requestBody(api: BenchApi, stream: boolean, n: number): string {
  const messages = [{ role: "user", content: `What is there to say about customer ${n}? Answer in fifty words.` }];
  return JSON.stringify({ model: apis[api].model, max_tokens: 300, ...(stream ? { stream } : {}), messages });
}

function startModelGateway(prefix: string, holdback: number): Promise<RunningGateway> {
  const config = `
providers:
  - { name: open, type: openai, base_url: "${provider.origin}${prefix}/v1", models: [chat-model] }
  - { name: claude, type: anthropic, base_url: "${provider.origin}${prefix}", models: [messages-model] }
model_gateway:
  holdback_bytes: ${holdback}
  routes:
    - { model: chat-model, providers: [{ name: open }] }
    - { model: messages-model, providers: [{ name: claude }] }
${baselinePolicy("{ path: packs/bench }")}`;
  const files = { "packs/bench/pack.yaml": pack, "packs/bench/rules/all.yaml": rules };
  return startGoverned(config, { files });
}
