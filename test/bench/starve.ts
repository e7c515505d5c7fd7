import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { measureLoad } from "./load.ts";
import { cpuSecondsOf } from "./process-cost.ts";
import { Servers } from "./servers.ts";
import { type Attack, attacks } from "./starve/attack.ts";
import type { AttackReport } from "./starve/attacker.ts";
import type { LaneName, Seen, Sights } from "./starve/bystander.ts";
import { crewKeys, warmers } from "./starve/crew.ts";
import { tableHead, tableRow } from "./table.ts";
import { echoUpstream, lookupCall, pidOf, watchedPolicy } from "./target.ts";

/**
 * What one key of a viewer can do to the others: for each attack a gateway of its own, warm, with all limits at their
 * defaults; how long things take that others do while it is quiet, and while the attack goes on. Attacker and bystanders are
 * processes of their own. It prints and asserts nothing.
 */
const seconds = Number(process.env.BENCH_SECONDS ?? 8);
const warmCalls = Number(process.env.BENCH_WARM ?? 4_000);
const names = process.env.BENCH_ATTACKS?.split(",") ?? Object.keys(attacks);
const columns: Readonly<Record<string, (sights: Sights) => number | null>> = {
  "tenant p50": ({ call }) => call.p50Ms,
  "tenant p99": ({ call }) => call.p99Ms,
  "new session p50": ({ session }) => session.p50Ms,
  "operator p50": ({ admin }) => admin.p50Ms,
  "operator p99": ({ admin }) => admin.p99Ms,
  "kill p50": ({ kill }) => kill.p50Ms,
  "kill p99": ({ kill }) => kill.p99Ms,
  "/health p99": ({ health }) => health.p99Ms,
};

const laneTitles: Readonly<Record<LaneName, string>> = {
  call: "calls",
  session: "new sessions",
  admin: "operator's requests",
  kill: "kills",
  health: "/health",
  socket: "operator's sockets",
};

interface Fight {
  readonly title: string;
  readonly quiet: Sights;
  readonly attacked: Sights;
  readonly report: AttackReport;
  readonly gatewaySeconds: number;
}

const servers = new Servers();
const upstream = await servers.start("echo-server.js");
process.stdout.write(
  `node ${process.version}, ${seconds} s quiet, then ${seconds} s under each attack; in ms, quiet → attacked\n\n`,
);
process.stdout.write(tableHead(["attack", ...Object.keys(columns), "failed", "attacker CPU s", "gateway CPU s"]));
const fights: Fight[] = [];
for (const name of names) {
  const fight = await fightOf(name, attacks[name]);
  process.stdout.write(rowOf(fight));
  fights.push(fight);
}
for (const fight of fights) process.stdout.write(answersOf(fight));
servers.stop();

async function fightOf(name: string, attack: Attack | undefined): Promise<Fight> {
  if (attack === undefined) throw new TypeError(`BENCH_ATTACKS: expected some of ${Object.keys(attacks)}, got ${name}`);
  const folder = await mkdtemp(join(tmpdir(), "starve-bench-"));
  const gateway = await start(folder, attack);
  const bystander = run("bystander.js", gateway.url, gateway.adminUrl);
  const attacker = run("attacker.js", name, gateway.url);
  try {
    await warm(gateway);
    await ask(bystander, 1);
    const quiet = await ask<Sights>(bystander, seconds);
    const before = cpuSecondsOf(pidOf(gateway));
    await ask(attacker, "begin");
    const attacked = await ask<Sights>(bystander, seconds);
    const report = await ask<AttackReport>(attacker, "end");
    const gatewaySeconds = cpuSecondsOf(pidOf(gateway)) - before;
    return { title: attack.title, quiet, attacked, report, gatewaySeconds };
  } finally {
    bystander.disconnect();
    if (attacker.connected) attacker.disconnect();
    await gateway.kill9();
    await rm(folder, { recursive: true, force: true });
  }
}

function start(folder: string, { config = "" }: Attack): Promise<RunningGateway> {
  const listen = "listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }\nlog: { level: error }\n";
  const text = listen + crewKeys() + echoUpstream(upstream.origin) + watchedPolicy + config;
  return startGateway({ ownProcess: true, folder, config: text, limitsShares: true });
}

/** Refused calls warm as well; the keys belong to a tenant of their own, so that no other finds its rate used up. */
async function warm(gateway: RunningGateway): Promise<void> {
  const load = { url: `${gateway.url}/mcp`, body: lookupCall, connections: 4, calls: warmCalls / warmers.length };
  for (const { key } of warmers) await measureLoad({ ...load, headers: { "x-api-key": key } });
}

function run(file: string, ...args: readonly string[]): ChildProcess {
  return fork(fileURLToPath(new URL(`starve/${file}`, import.meta.url)), args);
}

/** Sends a message and resolves with the answer; rejects where the process ends instead. */
async function ask<T>(child: ChildProcess, message: string | number): Promise<T> {
  const over = new AbortController();
  const { signal } = over;
  const ended = once(child, "exit", { signal }).then(([code]) => {
    throw new Error(`expected an answer of ${child.spawnargs[1]}, got exit code ${code}`);
  });
  ended.catch(() => undefined);
  const answered = once(child, "message", { signal });
  child.send(message);
  try {
    const [answer] = (await Promise.race([answered, ended])) as [T];
    return answer;
  } finally {
    over.abort();
  }
}

function rowOf({ title, quiet, attacked, report, gatewaySeconds }: Fight): string {
  const times = Object.values(columns).map((read) => `${msOf(read(quiet))} → ${msOf(read(attacked))}`);
  const failed = Object.entries<Seen>(attacked).filter(([, { failures }]) => failures > 0);
  const failures = failed.map(([lane, seen]) => `${laneTitles[lane as LaneName]} ${seen.failures}`).join(", ");
  return tableRow([title, ...times, failures, report.cpuSeconds.toFixed(2), gatewaySeconds.toFixed(2)]);
}

function msOf(ms: number | null): string {
  return ms === null ? "never" : ms.toFixed(1);
}

function answersOf({ title, report, attacked }: Fight): string {
  const refused = Object.entries<Seen>(attacked).flatMap(([lane, { reasons }]) =>
    reasons.map((reason) => `${laneTitles[lane as LaneName]}: ${reason}`),
  );
  const list = (lines: readonly string[]): string => lines.map((line) => `- ${line}\n`).join("");
  const others = refused.length === 0 ? "" : `\nThe others failed meanwhile:\n${list(refused)}`;
  return `\nThe attacker with ${title} got:\n${list(report.lines)}${others}`;
}
