import { existsSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { PostgresServer } from "../support/postgresql.ts";
import { replicaStore } from "../support/replica-store.ts";
import { scrape } from "../support/scrape.ts";
import { type LoadResult, measureLoad } from "./load.ts";
import { costSince, type ProcessCost, type ProcessUsage, usageOf } from "./process-cost.ts";
import { Servers } from "./servers.ts";
import { tableHead, tableRow } from "./table.ts";
import { baselinePolicy, echoUpstream, keyEntry, lookupCall, pidOf } from "./target.ts";

/**
 * The same governed call on LevelDB, and on PostgreSQL with one, two and three replicas, all on this machine: so the figures
 * are what a call costs each process, not what replicas add. It prints the tables of `core/replica/SIZING.md` and asserts nothing.
 */
const seconds = Number(process.env.BENCH_SECONDS ?? 3);
const warmCalls = Number(process.env.BENCH_WARM ?? 4_000);
const tenantCounts = [1, 10, 100] as const;
const connectionCounts = [1, 16, 64] as const;
/** The cell that the model is made of. */
const busiest = { connections: 64, tenants: 10 } as const;

/** Gateways on one store. The first of them owns it. */
interface SetUp {
  readonly name: string;
  readonly gateways: readonly RunningGateway[];
  /** Those that the load comes to. */
  readonly asked: readonly RunningGateway[];
  readonly database: PostgresServer | null;
}

/** Microseconds of processor time, and bytes of the database's log. */
interface Cost {
  readonly ownerMainUs: number;
  readonly ownerOtherUs: number;
  readonly forwarderUs: number;
  readonly postgresUs: number;
  readonly walBytes: number;
}

interface Cell extends LoadResult {
  /** A call. */
  readonly cost: Cost;
  readonly batchRecords: number;
}

const keys = Array.from({ length: Math.max(...tenantCounts) }, (_, index) => `bench-key-${index}-not-a-secret`);
const servers = new Servers();
const upstream = await servers.start("echo-server.js");
const common = `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys: [${keys.map((key, index) => keyEntry(`bench-${index}`, `tenant-${index}`, "operator", key)).join(", ")}]
log: { level: info }
${echoUpstream(upstream.origin)}${baselinePolicy()}`;

const postgres = await PostgresServer.start();
const databaseUrl = await postgres.createDatabase("bench");
const { stdout: version } = await postgres.sql("SHOW server_version");
write(`Node ${process.version}, PostgreSQL ${version.trim()}, ${cpus().length} × ${cpus()[0]?.model ?? "?"}, `);
write(`load ${loadavg()[0]?.toFixed(1)} before; ${warmCalls} calls to warm each, then ${seconds} s a row\n\n`);
write(
  tableHead([
    ...["set-up", "tenants", "connections", "calls/s", "p50 ms", "p99 ms", "records a commit"],
    ...["owner µs", "forwarding µs", "PostgreSQL µs", "WAL B", "errors"],
  ]),
);

const single = await startGateway({ ownProcess: true, config: common });
const onLevelDb = await measureAll({ name: "LevelDB", gateways: [single], asked: [single], database: null });
await single.stop();
const owner = await startReplica();
const one = await measureAll({ name: "1 replica", gateways: [owner], asked: [owner], database: postgres });
const second = await startReplica();
const forwarded = await measureAll({
  name: "2, asked at the other",
  gateways: [owner, second],
  asked: [second],
  database: postgres,
});
const all = [owner, second, await startReplica()];
await measureAll({ name: "3, asked at all", gateways: all, asked: all, database: postgres });
write(`\n${describeModel(onLevelDb, one, forwarded)}\n`);
write(`\n${await describeRest(all)}\n`);
await Promise.all(all.map((gateway) => gateway.kill9()));
await postgres.stop();
servers.stop();

async function startReplica(): Promise<RunningGateway> {
  const secret = "bench-secret-not-a-secret-".repeat(2);
  const store = replicaStore({ url: databaseUrl, secret });
  return startGateway({ ownProcess: true, config: `${common}\n${store.config}`, env: store.env });
}

/** Prints a row for each number of tenants and connections. Returns the cell that the model is made of. */
async function measureAll(setUp: SetUp): Promise<Cell> {
  const origins = setUp.asked.map(({ url }) => url);
  const load = { url: `${origins[0]}/mcp`, origins, headers: {}, body: lookupCall };
  await answers(setUp);
  await measureLoad({ ...load, key: keyOf(10), connections: 64, calls: warmCalls });
  let chosen: Cell | undefined;
  for (const tenants of tenantCounts) {
    for (const connections of connectionCounts) {
      const cell = await measureCell(setUp, { ...load, key: keyOf(tenants), connections, seconds });
      write(rowOf([setUp.name, tenants, connections], cell));
      if (tenants === busiest.tenants && connections === busiest.connections) chosen = cell;
    }
  }
  if (chosen === undefined) throw new TypeError("expected the cell of the model among those measured");
  return chosen;
}

/** A replica that was started may still have to copy the store, or wait for an owner. */
async function answers({ asked }: SetUp): Promise<void> {
  for (const { url } of asked)
    await measureLoad({ url: `${url}/mcp`, headers: {}, key: keyOf(1), body: lookupCall, connections: 1, calls: 1 });
}

function keyOf(tenants: number): (n: number) => string {
  return (n) => keys[n % tenants] ?? "";
}

async function measureCell({ gateways, database }: SetUp, load: Parameters<typeof measureLoad>[0]): Promise<Cell> {
  const [first, ...rest] = gateways as readonly [RunningGateway, ...RunningGateway[]];
  const batches = await batchesOf(first);
  const wal = await walBytesOf(database);
  const ownBefore = [usageOf(pidOf(first))];
  const restBefore = rest.map((each) => usageOf(pidOf(each)));
  const databaseBefore = await usagesOf(database);
  const result = await measureLoad(load);
  const [ownCost, forwarders, servers] = [sumCosts(ownBefore), sumCosts(restBefore), sumCosts(databaseBefore)];
  const walAfter = await walBytesOf(database);
  const batchesAfter = await batchesOf(first);
  const each = (value: number): number => value / result.calls;
  return {
    ...result,
    batchRecords: (batchesAfter.records - batches.records) / Math.max(1, batchesAfter.count - batches.count),
    cost: {
      ownerMainUs: each(ownCost.mainUs),
      ownerOtherUs: each(ownCost.otherUs),
      forwarderUs: each(forwarders.mainUs + forwarders.otherUs),
      postgresUs: each(servers.mainUs + servers.otherUs),
      walBytes: each(walAfter - wal),
    },
  };
}

function sumCosts(usages: readonly ProcessUsage[]): Pick<ProcessCost, "mainUs" | "otherUs"> {
  const costs = usages.filter(({ pid }) => isRunning(pid)).map(costSince);
  const sum = (figure: "mainUs" | "otherUs"): number => costs.reduce((total, cost) => total + cost[figure], 0);
  return { mainUs: sum("mainUs"), otherUs: sum("otherUs") };
}

/** The processes of the database server that stay, and those of connections, which end when they were idle for some seconds. */
async function usagesOf(database: PostgresServer | null): Promise<readonly ProcessUsage[]> {
  if (database === null) return [];
  const { stdout } = await database.sql(
    "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'",
  );
  return stdout.trim().split("\n").map(Number).filter(isRunning).map(usageOf);
}

function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}/task`);
}

async function walBytesOf(database: PostgresServer | null): Promise<number> {
  if (database === null) return 0;
  return Number((await database.sql("SELECT pg_current_wal_insert_lsn() - '0/0'")).stdout);
}

async function batchesOf({
  metricsUrl,
}: RunningGateway): Promise<{ readonly count: number; readonly records: number }> {
  const metrics = await scrape(metricsUrl);
  const read = (of: string): number => metrics.get(`gateway_evidence_batch_records_${of}`) ?? 0;
  return { count: read("count"), records: read("sum") };
}

function rowOf(names: readonly (string | number)[], { cost, ...cell }: Cell): string {
  const speed = [
    cell.requestsPerSecond.toFixed(0),
    cell.p50Ms.toFixed(1),
    cell.p99Ms.toFixed(1),
    cell.batchRecords.toFixed(1),
  ];
  const times = [cost.ownerMainUs + cost.ownerOtherUs, cost.forwarderUs, cost.postgresUs];
  return tableRow([...names, ...speed, ...[...times, cost.walBytes].map((figure) => figure.toFixed(0)), cell.errors]);
}

/** The rate at which each part has no more to give, from what a call costs it. */
function describeModel(levelDb: Cell, direct: Cell, forwarded: Cell): string {
  const threads: readonly (readonly [string, number])[] = [
    ["main thread of the gateway, LevelDB", levelDb.cost.ownerMainUs],
    ["main thread of the owner", direct.cost.ownerMainUs],
    ["main thread of the owner, calls forwarded to it", forwarded.cost.ownerMainUs],
    ["a replica that forwards, one core", forwarded.cost.forwarderUs],
    ["PostgreSQL, one core", direct.cost.postgresUs],
  ];
  const rows = threads.map(([part, us]) => tableRow([part, `${us.toFixed(0)} µs`, (1e6 / us).toFixed(0)]));
  const megabyte = tableRow([
    "WAL, for each MB/s that the disk takes",
    `${direct.cost.walBytes.toFixed(0)} B`,
    (1e6 / direct.cost.walBytes).toFixed(0),
  ]);
  return `${tableHead(["part", "a call", "calls/s at which it is full"])}${rows.join("")}${megabyte}`;
}

async function describeRest(gateways: readonly RunningGateway[]): Promise<string> {
  const restMs = 5_000;
  const before = [gateways.slice(0, 1), gateways.slice(1)].map((some) => some.map((each) => usageOf(pidOf(each))));
  const database = await usagesOf(postgres);
  await sleep(restMs);
  const percent = (usages: readonly ProcessUsage[]): string => {
    const { mainUs, otherUs } = sumCosts(usages);
    return ((mainUs + otherUs) / (restMs * 10) / Math.max(1, usages === database ? 1 : usages.length)).toFixed(1);
  };
  const [first = [], rest = []] = before;
  return `At rest, in percent of a core: owner ${percent(first)}, each other replica ${percent(rest)}, PostgreSQL ${percent(database)}.`;
}

function write(text: string): void {
  process.stdout.write(text);
}
