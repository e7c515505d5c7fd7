import { existsSync, readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { expect } from "chai";
import { pluginInput } from "../../../core/plugin/abi.ts";
import { PluginBreach } from "../../../core/plugin/breach.ts";
import { compileModule } from "../../../core/plugin/compiled-module.ts";
import type { CompiledModule } from "../../../core/plugin/plugin-machine.ts";
import { PluginPool, type PoolReply } from "../../../core/plugin/plugin-pool.ts";
import { makeAction } from "../../support/action.ts";
import { hostileExtism } from "../../support/hostile-extism.ts";
import { abstain, assemble, moduleOf } from "../../support/wasm-plugin.ts";

const fuel = 50_000_000;
/** Longer than any deadline of these tests: the pool does not ask how much fuel is sensible. */
const endless = Number.MAX_SAFE_INTEGER;
const machines = new Map<CompiledModule, number>();

function compile(body: string): Promise<CompiledModule> {
  return compileText(moduleOf(body));
}

async function compileText(module: string | Uint8Array): Promise<CompiledModule> {
  const bytes = typeof module === "string" ? assemble(module) : module;
  const compiled = await compileModule({ bytes, memoryPages: 16, fuel, settings: {} });
  machines.set(compiled, machines.size);
  return compiled;
}

/** Of each thread of this process. */
function readNiceness(): readonly number[] {
  const folder = "/proc/self/task";
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map((thread) => {
    const fields = readFileSync(`${folder}/${thread}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return Number(fields[16]);
  });
}

describe("PluginPool", () => {
  const open: PluginPool[] = [];
  let quick: CompiledModule;
  let spinning: CompiledModule;

  before(async () => {
    quick = await compile("");
    spinning = await compile("(loop $l (br $l))");
  });

  afterEach(() => Promise.all(open.splice(0).map((pool) => pool.close())));

  interface World {
    readonly pool: PluginPool;
    readonly threads: number[];
    readonly waiting: number[];
    /** Who had a thread, each time. */
    readonly ran: string[];
  }

  function openPool(threads: number, deadlineMs: number, maxWaitMs?: number): World {
    const seen = { threads: [] as number[], waiting: [] as number[], ran: [] as string[] };
    const observer = {
      threads: (n: number) => seen.threads.push(n),
      waiting: (n: number) => seen.waiting.push(n),
      ran: ({ tenant, key }: { tenant: string; key: string }, ms: number) =>
        seen.ran.push(`${tenant} ${key}: ${ms > 0 && ms <= deadlineMs}`),
    };
    const pool = new PluginPool({ threads, deadlineMs, observer, ...(maxWaitMs === undefined ? {} : { maxWaitMs }) });
    open.push(pool);
    return { pool, ...seen };
  }

  interface Whose {
    readonly plugin?: string;
    readonly tenant?: string;
    readonly key?: string;
    readonly fuel?: number;
  }

  function call(pool: PluginPool, compiled: CompiledModule, whose: Whose = {}): Promise<PoolReply> {
    const machine = machines.get(compiled) ?? -1;
    const order = { compiled, machine, fuel, input: pluginInput("{}", makeAction()) };
    return pool.call({ plugin: "p", tenant: "t", key: "k", ...order, ...whose });
  }

  async function reasonOf(result: Promise<unknown>): Promise<string> {
    const error = await result.then(
      () => "answered",
      (cause: unknown) => cause,
    );
    return error instanceof PluginBreach ? error.reason : String(error);
  }

  it("answers with the plugin's bytes and the fuel they took, the same each time", async () => {
    const { pool } = openPool(2, 60_000);
    const replies = await Promise.all(Array.from({ length: 50 }, () => call(pool, quick)));
    const seen = replies.map((reply) => ("answer" in reply ? Buffer.from(reply.answer).toString() : reply.reason));
    expect(new Set(seen)).to.deep.equal(new Set([abstain]));
    expect(new Set(replies.map(({ fuelUsed }) => fuelUsed)).size).to.equal(1);
  });

  it("[S35] tells a breach by its reason, and goes on", async () => {
    const { pool } = openPool(1, 60_000);
    const reply = await call(pool, spinning);
    expect(reply).to.include({ reason: "fuel_exhausted" });
    expect(reply.fuelUsed).to.be.greaterThan(fuel);
    expect(await call(pool, quick)).to.have.property("answer");
  });

  it("[S35] stops a call at the deadline that its fuel does not stop, and has a thread again", async () => {
    const { pool, threads } = openPool(1, 2_000);
    await call(pool, quick);
    expect(await reasonOf(call(pool, spinning, { fuel: endless }))).to.equal("timeout");
    while (threads.length < 3) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(threads).to.deep.equal([1, 0, 1]);
    expect(await call(pool, quick)).to.have.property("answer");
  });

  it("[S35] keeps a thread free of any one plugin and of any one tenant", async () => {
    const { pool } = openPool(2, 2_000);
    const held = [0, 1, 2].map(() => call(pool, spinning, { fuel: endless, plugin: "hostile", tenant: "hostile" }));
    const ended = Promise.allSettled(held);
    for (let round = 0; round < 5; round++) expect(await call(pool, quick)).to.have.property("answer");
    expect(await Promise.race([ended, "still running"])).to.equal("still running");
    await pool.close();
    await ended;
  });

  it("runs as many calls at once as it has threads less one for a plugin", async () => {
    const oneOf = async (threads: number): Promise<string> => {
      const { pool } = openPool(threads, 2_000);
      await call(pool, quick);
      const long = call(pool, spinning, { fuel: endless });
      const short = call(pool, quick).then(() => "short");
      const first = await Promise.race([short, reasonOf(long)]);
      await Promise.all([pool.close(), short.catch(() => undefined)]);
      return first;
    };
    expect(await oneOf(3)).to.equal("short");
    expect(await oneOf(1)).to.equal("timeout");
  });

  it("[S35] refuses what is more than may wait, at once", async () => {
    const { pool, waiting } = openPool(1, 10_000);
    const held = Array.from({ length: 200 }, () => reasonOf(call(pool, spinning, { fuel: endless })));
    const reason = await Promise.race(held);
    expect(reason).to.equal("overloaded");
    expect(Math.max(...waiting)).to.be.within(10, 199);
    await pool.close();
    expect(new Set(await Promise.all(held))).to.deep.equal(new Set(["overloaded", "thread_lost"]));
  });

  it("[S77] tells whose call had a thread, for as long as it had it", async () => {
    const { pool, ran } = openPool(1, 2_000);
    await call(pool, quick, { key: "ann" });
    await call(pool, spinning, { key: "bob", tenant: "u" });
    await reasonOf(call(pool, spinning, { key: "eve", fuel: endless }));
    expect(ran).to.deep.equal(["t ann: true", "u bob: true", "t eve: true"]);
  });

  it("[S77] lets a call wait for others for longer than it may run itself", async () => {
    const { pool } = openPool(1, 500);
    await call(pool, quick);
    const held = [0, 1].map(() => reasonOf(call(pool, spinning, { fuel: endless, tenant: "hostile" })));
    expect(pool.isBusy).to.equal(true);
    expect(await reasonOf(call(pool, quick))).to.equal("answered");
    expect(await Promise.all(held)).to.deep.equal(["timeout", "timeout"]);
    expect(pool.isBusy).to.equal(false);
  });

  it("does not take a reply for late because this thread was held up", async () => {
    const { pool } = openPool(1, 500);
    await call(pool, quick);
    const reply = call(pool, quick);
    const end = performance.now() + 1_500;
    while (performance.now() < end);
    expect(await reasonOf(reply)).to.equal("answered");
  });

  it("tells a call that no thread was free for from one that is itself too slow", async () => {
    const { pool } = openPool(1, 2_000, 2_000);
    await call(pool, quick);
    const results = [call(pool, spinning, { fuel: endless }), call(pool, quick)];
    expect(await Promise.all(results.map(reasonOf))).to.deep.equal(["timeout", "overloaded"]);
  });

  it("[S35, S88] lets another tenant's call wait for two of a key whose calls are hostile to Extism, however many wait", async () => {
    const { pool } = openPool(1, 60_000);
    const modules = await Promise.all(hostileExtism.map(({ module }) => compileText(module)));
    let ended = 0;
    const flood = modules.map(async (module, index) => {
      await call(pool, module, { plugin: `hostile ${index}`, tenant: "mallory", key: "many", fuel: 5_000_000 });
      ended += 1;
    });
    const waits: number[] = [];
    for (let round = 0; round < 8; round++) {
      const before = ended;
      expect(await call(pool, quick, { tenant: "acme", plugin: "ordinary" })).to.have.property("answer");
      waits.push(ended - before);
    }
    expect(Math.max(...waits)).to.be.at.most(2);
    expect(ended).to.be.lessThan(modules.length);
    await Promise.all(flood);
  });

  it("has threads that give way to the process, where the system has priorities for threads", async () => {
    const { pool } = openPool(2, 60_000);
    await Promise.all([0, 1].map((n) => call(pool, spinning, { plugin: `p${n}`, tenant: `t${n}` })));
    const lower = readNiceness().filter((niceness) => niceness === Math.min(19, getPriority() + 10));
    expect(lower).to.have.length(process.platform === "linux" ? 2 : 0);
  });

  it("has a thread again after one that broke", async () => {
    const { pool, threads } = openPool(1, 60_000);
    const broken = { ...quick, module: {} as WebAssembly.Module };
    machines.set(broken, machines.size);
    expect(await reasonOf(call(pool, broken))).to.equal("thread_lost");
    expect(await call(pool, quick)).to.have.property("answer");
    expect(threads).to.deep.equal([1, 0, 1]);
  });

  it("fails what is under way when it closes, and all that comes after", async () => {
    const { pool, threads } = openPool(2, 60_000);
    const results = Promise.all([0, 1, 2].map(() => reasonOf(call(pool, spinning, { fuel: endless }))));
    await call(pool, quick, { plugin: "q", tenant: "u" });
    await pool.close();
    expect(await results).to.deep.equal(["thread_lost", "thread_lost", "thread_lost"]);
    expect(await reasonOf(call(pool, quick))).to.equal("thread_lost");
    expect(threads.at(-1)).to.equal(0);
  });
});
