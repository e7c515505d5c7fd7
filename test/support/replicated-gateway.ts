import { randomBytes } from "node:crypto";
import { mkdir, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { GatewayOptions, RunningGateway } from "./gateway.ts";
import { PostgresServer } from "./postgresql.ts";
import { replicaStore } from "./replica-store.ts";
import { RoundRobin } from "./round-robin.ts";

/** What the replicas on one folder share for as long as this process lives. */
interface Shared {
  readonly url: string;
  readonly secret: string;
}

const sharedBy = new Map<string, Shared>();
let databases = 0;
let server: Promise<PostgresServer> | undefined;

/** True where a gateway with this configuration can be one of several. */
export function canBeReplicated(config: string): boolean {
  return !/^store:/m.test(config) && !/^state:.*(enabled: false|mark:)/m.test(config);
}

/**
 * Starts replicas where a test asks for a gateway: on a database of their own, with a round-robin proxy before each of their
 * ports, so that the test's requests are spread over them. The first runs in `folder`, the others in folders that link to what
 * that one holds, each with data of its own. `start`: starts one gateway in a folder, which it removes where it owns it.
 */
export async function startReplicas(
  count: number,
  folder: string,
  owned: boolean,
  options: GatewayOptions,
  start: (folder: string, owned: boolean, options: GatewayOptions) => Promise<RunningGateway>,
): Promise<RunningGateway> {
  const store = replicaStore({ ...(await sharedOf(folder)), leaseMs: 5_000 });
  const env = { ...options.env, ...store.env };
  // A port that the test chose is the load balancer's.
  const config = `${options.config.replace(/_port: \d+/g, "_port: 0")}\n${store.config}`;
  const members: RunningGateway[] = [await start(folder, owned, { ...options, config, env })];
  const folders = Array.from({ length: count - 1 }, (_, index) => `${folder}-replica-${index + 1}`);
  try {
    for (const other of folders) {
      await link(folder, other);
      const { files: _, ...rest } = options;
      members.push(await start(other, owned, { ...rest, config, env }));
    }
  } catch (error) {
    await Promise.all(members.map((member) => member.kill9()));
    throw error;
  }
  return await joined(members, options.config);
}

async function joined(members: readonly RunningGateway[], config: string): Promise<RunningGateway> {
  const [first] = members;
  if (first === undefined) throw new Error("expected a replica");
  const balance = (port: "url" | "adminUrl" | "metricsUrl", name: string): Promise<RoundRobin> => {
    const [, chosen] = new RegExp(`\\b${name}_port: (\\d+)`).exec(config) ?? [];
    return RoundRobin.start(() => members.map((member) => member[port]), Number(chosen ?? 0));
  };
  const balancers = [
    await balance("url", "gateway"),
    await balance("adminUrl", "admin"),
    await balance("metricsUrl", "metrics"),
  ];
  const [url, adminUrl, metricsUrl] = balancers.map((balancer) => balancer.url) as [string, string, string];
  const end = async (each: (member: RunningGateway) => Promise<number>): Promise<number> => {
    const codes = await Promise.all(members.map(each));
    for (const balancer of balancers) balancer.stop();
    return Math.max(...codes);
  };
  return {
    url,
    adminUrl,
    metricsUrl,
    folder: first.folder,
    process: first.process,
    stdout: () => members.map((member) => member.stdout()).join(""),
    stderr: () => members.map((member) => member.stderr()).join(""),
    stop: () => end((member) => member.stop()),
    kill9: async () => {
      await end(async (member) => {
        await member.kill9();
        return 0;
      });
    },
  };
}

async function sharedOf(folder: string): Promise<Shared> {
  const known = sharedBy.get(folder);
  if (known !== undefined) return known;
  server ??= PostgresServer.start().then((started) => {
    started.endWithProcess();
    return started;
  });
  const name = `gateway_${++databases}`;
  const shared = { url: await (await server).createDatabase(name), secret: randomBytes(32).toString("hex") };
  sharedBy.set(folder, shared);
  return shared;
}

/** Links everything in a folder but its data into another one. */
async function link(folder: string, other: string): Promise<void> {
  await mkdir(other, { recursive: true });
  const there = new Set(await readdir(other));
  for (const name of await readdir(folder)) {
    if (name !== "data" && !there.has(name)) await symlink(join(folder, name), join(other, name));
  }
}
