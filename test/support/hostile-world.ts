import { createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { Client } from "undici";
import { startGateway } from "./gateway.ts";
import { hostileCalls } from "./hostile-call.ts";
import { allowEverything } from "./pack.ts";
import { PackFolders } from "./policy-pack.ts";
import { type Recorder, startRecorder } from "./recorder.ts";
import { abstain, folderOf, moduleOf } from "./wasm-plugin.ts";

/** One request on the wire. */
export interface Answered {
  readonly isBlocked: boolean;
  readonly tookMs: number;
}

/** A module that fails where `when`, a condition in code, holds, and else abstains. */
interface HostileModule {
  readonly text?: (when: string) => string;
}

/**
 * A gateway whose plugins are all of a suite: each fails on inputs of one size, and abstains from any other. Its
 * state is in memory: how long the disk takes is not what is asked.
 */
export interface HostileWorld {
  readonly recorder: Recorder;
  /** Calls a tool over a connection of its own, with the key of a tenant. */
  connect(tenant?: Tenant): Caller;
  /** Threads of the pool that are there now. */
  threads(): Promise<number>;
  /** How often a plugin was stopped so far, by why. */
  breaches(): Promise<ReadonlyMap<string, number>>;
  /** The most memory the process ever held, in bytes. */
  peakMemory(): Promise<number>;
  stop(): Promise<void>;
}

const tenants = ["acme", "mallory"] as const;
type Tenant = (typeof tenants)[number];

export interface Caller {
  /** With so many bytes of text. */
  call(textBytes: number): Promise<Answered>;
  /** One call each `paceMs`, or as soon as the last was answered where that took longer. */
  callOn(paceMs: number, nextBytes: () => number): Calling;
  close(): Promise<void>;
}

export interface Calling {
  /** Resolves with all answers, once the last is there. */
  stop(): Promise<readonly Answered[]>;
}

const sizeStep = 1_024;
/** What an input holds beside the text, roughly. */
const envelopeBytes = 900;
export const ordinaryBytes = 100;

/** The size of text at which the n-th of `hostileCalls` fails; beyond the last, none does. */
export function hostileBytes(index: number): number {
  return (index + 4) * sizeStep + sizeStep / 2 - envelopeBytes;
}

/** With `usesPool` there is one plugin more, whose memory is so large that each call of it runs in the pool. */
export async function openHostileWorld(
  suite: readonly HostileModule[] = hostileCalls,
  usesPool = false,
): Promise<HostileWorld> {
  const folders = new PackFolders();
  const recorder = await startRecorder();
  const keys = tenants.map((tenant) => ({ tenant, key: `test-${randomBytes(32).toString("base64url")}` }));
  const paths = await Promise.all(suite.map((module, index) => writePlugin(folders, index, module)));
  if (usesPool) paths.push(await folders.write(withLimits(folderOf("wide", moduleOf("", abstain, "(memory 32)")), 32)));
  const rows = keys.map(
    ({ tenant, key }) =>
      `{ id: ${tenant}, tenant: ${tenant}, role: operator, key_hash: "sha256:${createHash("sha256").update(key).digest("hex")}" }`,
  );
  const gateway = await startGateway({
    ownProcess: true,
    files: allowEverything("packs/open"),
    config: `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys: [${rows.join(", ")}]
upstreams: [{ name: remote, transport: http, url: "${recorder.url}", protocol: legacy, connection: shared }]
policy: { deadline_ms: 10000, packs: [{ path: packs/open }], plugins: [${paths.map((path) => `{ path: "${path}", phases: [input] }`).join(", ")}] }
state: { enabled: false }
log: { level: warn }
`,
  });
  const readMetrics = async (): Promise<string> => (await fetch(`${gateway.metricsUrl}/metrics`)).text();
  return {
    recorder,
    connect: (tenant = "acme") => openCaller(gateway.url, keys.find((each) => each.tenant === tenant)?.key ?? ""),
    threads: async () => Number(/^gateway_plugin_threads (\d+)$/m.exec(await readMetrics())?.[1]),
    breaches: async () => readBreaches(await readMetrics()),
    peakMemory: async () => {
      const status = await readFile(`/proc/${gateway.process.pid}/status`, "utf8");
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
    },
    stop: async () => {
      await gateway.stop();
      await recorder.stop();
      await folders.remove();
    },
  };
}

function writePlugin(folders: PackFolders, index: number, module: HostileModule): Promise<string> {
  const size = `(i32.shr_u (i32.wrap_i64 (call $input_length)) (i32.const ${Math.log2(sizeStep)}))`;
  const text = module.text?.(`(i32.eq ${size} (i32.const ${index + 4}))`) ?? "";
  return folders.write(withLimits(folderOf(`hostile-${index}`, text), 16));
}

function withLimits(files: ReturnType<typeof folderOf>, pages: number): ReturnType<typeof folderOf> {
  return {
    ...files,
    "plugin.yaml": `${files["plugin.yaml"]}limits: { fuel: 50000000, memory_pages: ${pages} }\n`,
  };
}

function openCaller(url: string, key: string): Caller {
  const client = new Client(url);
  const headers = { "content-type": "application/json", "x-api-key": key };
  const call = async (textBytes: number): Promise<Answered> => {
    const params = { name: "echo", arguments: { text: "x".repeat(textBytes) } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    const started = performance.now();
    const response = await client.request({ method: "POST", path: "/mcp", headers, body });
    const text = await response.body.text();
    const { result } = JSON.parse(text) as { readonly result?: { readonly isError?: boolean } };
    if (result === undefined) throw new Error(`expected a result, got ${text.slice(0, 500)}`);
    return { isBlocked: result.isError === true, tookMs: performance.now() - started };
  };
  const callOn = (paceMs: number, nextBytes: () => number): Calling => {
    const answers: Answered[] = [];
    let isRunning = true;
    const calling = (async () => {
      for (let due = performance.now(); isRunning; due = Math.max(due + paceMs, performance.now())) {
        await setTimeout(Math.max(0, due - performance.now()));
        answers.push(await call(nextBytes()));
      }
      return answers;
    })();
    return {
      stop: () => {
        isRunning = false;
        return calling;
      },
    };
  };
  return { call, callOn, close: () => client.close() };
}

function readBreaches(metrics: string): ReadonlyMap<string, number> {
  const rows = metrics.matchAll(/^gateway_plugin_breaches_total\{reason="(\w+)"\} (\d+)$/gm);
  return new Map([...rows].map(([, reason = "", count]) => [reason, Number(count)]));
}
