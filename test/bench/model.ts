import { createHash } from "node:crypto";
import { join } from "node:path";
import type { ModelApi } from "../../core/action/model-api.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { type LoadResult, measureLoad } from "./load.ts";
import { Servers } from "./servers.ts";
import { measurePace, type Pace } from "./stream-pace.ts";

/**
 * Governed model requests beside their floor and their anchor, in one run on loopback: the provider directly, a bare
 * Koa and undici pass-through, and the gateway with the baseline pack, rules that read what models are asked and what
 * they answer, and durable evidence. It prints and asserts nothing.
 */
const seconds = Number(process.env.BENCH_SECONDS ?? 2);
const streams = Number(process.env.BENCH_STREAMS ?? 10);
const key = "bench-key-not-a-secret";
const apis = {
  chat: { path: "/v1/chat/completions", model: "chat-model", token: /"content":"\s?token/g },
  messages: { path: "/v1/messages", model: "messages-model", token: /"text":"\s?token/g },
} as const;
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
const bare = await servers.start("pass-through.js", provider);
process.stdout.write(`node ${process.version}, ${seconds} s a cell, 50 tokens an answer\n\n`);
await printLoads();
await printPaces();
servers.stop();

async function printLoads(): Promise<void> {
  const gateway = await governed("", 256);
  const targets = [
    ["provider directly", provider],
    ["bare pass-through", bare],
    ["governed", gateway.url],
  ] as const;
  process.stdout.write(
    "| API | streamed | connections | target | requests/s | p50 ms | p99 ms | first token ms | of bare | errors |\n",
  );
  process.stdout.write("|---|---|---|---|---|---|---|---|---|---|\n");
  for (const api of ["chat", "messages"] as const) {
    for (const stream of [false, true]) {
      for (const connections of [1, 16, 64]) {
        let anchor = 0;
        for (const [name, origin] of targets) {
          const result = await load(api, stream, connections, origin);
          if (name === "bare pass-through") anchor = result.requestsPerSecond;
          process.stdout.write(row([api, stream ? "yes" : "no", connections, name, ...cellsOf(result, anchor)]));
        }
      }
    }
  }
  await gateway.stop();
}

function load(api: ModelApi, stream: boolean, connections: number, origin: string): Promise<LoadResult> {
  const { path } = apis[api];
  const body = (n: number): string => requestBody(api, stream, n);
  const firstToken = stream ? { firstToken: "token0" } : {};
  return measureLoad({ url: origin + path, headers: { "x-api-key": key }, body, connections, seconds, ...firstToken });
}

function cellsOf(result: LoadResult, anchor: number): readonly (string | number)[] {
  const { requestsPerSecond, p50Ms, p99Ms, firstTokenMs, errors } = result;
  const ratio = anchor === 0 ? "" : (requestsPerSecond / anchor).toFixed(2);
  const first = firstTokenMs === 0 ? "" : firstTokenMs.toFixed(2);
  return [Math.round(requestsPerSecond), p50Ms.toFixed(2), p99Ms.toFixed(2), first, ratio, errors];
}

/** One stream at a time, its tokens 10 ms apart: what the gateway adds to their times over the bare pass-through. */
async function printPaces(): Promise<void> {
  process.stdout.write("\nTokens 10 ms apart; added over the bare pass-through, in ms:\n\n");
  process.stdout.write("| API | holdback bytes | first token | any token | p99 between two |\n|---|---|---|---|---|\n");
  for (const holdback of [256, 0]) {
    const gateway = await governed("/paced", holdback);
    for (const api of ["chat", "messages"] as const) {
      const [through, own] = [await pace(api, `${bare}/paced`), await pace(api, gateway.url)];
      const added = (of: keyof Pace): string => (own[of] - through[of]).toFixed(2);
      process.stdout.write(row([api, holdback, added("firstTokenMs"), added("tokenMs"), added("p99GapMs")]));
    }
    await gateway.stop();
  }
}

function pace(api: ModelApi, origin: string): Promise<Pace> {
  const { path, token } = apis[api];
  const body = requestBody(api, true, 0);
  return measurePace({ url: origin + path, headers: { "x-api-key": key }, body, token, streams });
}

function requestBody(api: ModelApi, stream: boolean, n: number): string {
  const messages = [{ role: "user", content: `What is there to say about customer ${n}? Answer in fifty words.` }];
  return JSON.stringify({ model: apis[api].model, max_tokens: 100, ...(stream ? { stream } : {}), messages });
}

function governed(prefix: string, holdback: number): Promise<RunningGateway> {
  return startGateway({
    files: { "packs/bench/pack.yaml": pack, "packs/bench/rules/all.yaml": rules },
    config: `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys: [{ id: bench, tenant: bench, role: operator, key_hash: "sha256:${createHash("sha256").update(key).digest("hex")}" }]
providers:
  - { name: open, type: openai, base_url: "${provider}${prefix}/v1", models: [chat-model] }
  - { name: claude, type: anthropic, base_url: "${provider}${prefix}", models: [messages-model] }
model_gateway:
  holdback_bytes: ${holdback}
  routes:
    - { model: chat-model, providers: [{ name: open }] }
    - { model: messages-model, providers: [{ name: claude }] }
usage: { requests_per_minute: 1000000000, tokens_per_minute: 1000000000 }
policy: { packs: [{ path: ${join(repositoryRoot, "policy-packs/baseline")} }, { path: packs/bench }] }
log: { level: warn }
`,
  });
}

function row(cells: readonly (string | number)[]): string {
  return `| ${cells.join(" | ")} |\n`;
}
