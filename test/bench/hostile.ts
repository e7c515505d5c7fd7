import { hostileCalls } from "../support/hostile-call.ts";
import { hostileExtism } from "../support/hostile-extism.ts";
import { type HostileWorld, hostileBytes, openHostileWorld, ordinaryBytes } from "../support/hostile-world.ts";
import { quantile } from "./quantile.ts";

// How long ordinary calls of a gateway take alone, beside other ordinary calls as large as the hostile ones, and beside
// calls at which plugins fail in every way of a hostile suite: once with callers of one tenant, and once with the modules that
// are hostile to Extism, called by another tenant's key, where each call runs in the pool as well. The three take turns, so
// that what else the machine does is in all of them. It prints and asserts nothing.
const rounds = Number(process.env.BENCH_ROUNDS ?? 8);
const windowMs = 1_500;
const neighbours = 2;
const paceMs = 20;

type Neighbour = "nobody" | "ordinary calls" | "hostile calls";

process.stdout.write(
  `node ${process.version}, ${rounds} windows of ${windowMs} ms each, one caller measured, ${neighbours} beside it, a call every ${paceMs} ms each\n`,
);
await measure("modules that are hostile, of the same tenant", hostileCalls.length, "acme", await openHostileWorld());
const conditional = hostileExtism.filter(({ text }) => text !== undefined);
await measure(
  "modules that are hostile to Extism, of another tenant, and a plugin that runs in the pool",
  conditional.length,
  "mallory",
  await openHostileWorld(conditional, true),
);

async function measure(title: string, suite: number, tenant: "acme" | "mallory", world: HostileWorld): Promise<void> {
  const measured = world.connect();
  const others = Array.from({ length: neighbours }, () => world.connect(tenant));
  const times = new Map<Neighbour, number[]>();
  const beside = new Map<Neighbour, number>();
  let next = 0;

  /** Ordinary calls are of the same sizes, one step beyond the last that is hostile. */
  function bytesOf(neighbour: Neighbour): number {
    const index = next++ % suite;
    return neighbour === "hostile calls" ? hostileBytes(index) : hostileBytes(suite + (index % 2));
  }

  async function window(neighbour: Neighbour): Promise<void> {
    const until = performance.now() + windowMs;
    const disturbing =
      neighbour === "nobody" ? [] : others.map((caller) => caller.callOn(paceMs, () => bytesOf(neighbour)));
    const seen = times.get(neighbour) ?? [];
    while (performance.now() < until) seen.push((await measured.call(ordinaryBytes)).tookMs);
    times.set(neighbour, seen);
    const answers = await Promise.all(disturbing.map((calling) => calling.stop()));
    beside.set(neighbour, (beside.get(neighbour) ?? 0) + answers.flat().length);
  }

  for (let round = 0; round <= rounds; round++) {
    for (const neighbour of ["nobody", "ordinary calls", "hostile calls"] as const) await window(neighbour);
    // The first round warms up.
    if (round === 0) {
      times.clear();
      beside.clear();
    }
  }

  process.stdout.write(`\n${suite} ${title}\n\n`);
  process.stdout.write("| beside | calls beside it | calls | p50 ms | p90 ms | p99 ms |\n|---|---|---|---|---|---|\n");
  for (const [neighbour, seen] of times) {
    const at = (share: number): string => quantile(seen, share).toFixed(2);
    const cells = [neighbour, beside.get(neighbour) ?? 0, seen.length, at(0.5), at(0.9), at(0.99)];
    process.stdout.write(`| ${cells.join(" | ")} |\n`);
  }
  const breaches = [...(await world.breaches())].filter(([, count]) => count > 0);
  process.stdout.write(
    `\nplugins were stopped: ${breaches.map(([reason, count]) => `${reason} ${count}`).join(", ")}\n`,
  );
  await Promise.all([measured, ...others].map((caller) => caller.close()));
  await world.stop();
}
