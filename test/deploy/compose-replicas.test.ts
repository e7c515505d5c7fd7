import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { repositoryRoot } from "../check/source-tree.ts";
import { runCommand } from "../support/command-host.ts";
import { freePorts } from "../support/free-port.ts";
import { PostgresProxy } from "../support/postgresql-proxy.ts";
import { runProgram } from "../support/program.ts";
import { eventually, ReplicaSite, SteadyCalls } from "../support/replica-site.ts";
import { probeReadiness } from "../support/shipped-probe.ts";
import { type DoctorWorld, openDoctorWorld } from "../unit/cli/doctor/world.ts";

const folderOfFiles = join(repositoryRoot, "core/cli/deploy");
const file = join(folderOfFiles, "compose-replicas.yaml");
const text = readFileSync(file, "utf8");
const agents = 4;
const members = ["gateway-1", "gateway-2", "gateway-3"] as const;

interface Service {
  readonly image: string;
  readonly hostname?: string;
  readonly ports?: readonly string[];
  readonly volumes: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly healthcheck?: object;
}

/** The comment's line that makes `.env`. */
function secretsCommand(): string {
  const command = /^# {3}(\(umask .*)$/m.exec(text)?.[1];
  if (command === undefined) throw new Error("expected a command that makes the secrets");
  return command;
}

describe("the compose file of replicas", function () {
  this.timeout(60_000);
  let folder: string;
  let world: DoctorWorld;
  let services: Readonly<Record<string, Service>>;
  let secrets: Readonly<Record<string, string>>;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "compose-replicas-"));
    await cp(file, join(folder, "compose.yaml"));
    const { code, stderr } = await runProgram("sh", ["-c", `cd '${folder}' && ${secretsCommand()}`]);
    expect(code, stderr).to.equal(0);
    const lines = (await readFile(join(folder, ".env"), "utf8")).trim().split("\n");
    secrets = Object.fromEntries(lines.map((line) => line.split("=")));
    const read = await readCompose();
    expect(read.code, read.stderr).to.equal(0);
    services = (parse(read.stdout) as { services: Record<string, Service> }).services;
    world = await openDoctorWorld();
  });

  after(async () => {
    await world?.remove();
    await rm(folder, { recursive: true });
  });

  /** Debian's docker-compose refuses what its schema does not know, and prints the rest in full. */
  function readCompose(): ReturnType<typeof runProgram> {
    const args = ["--project-directory", folder, "--file", join(folder, "compose.yaml"), "config"];
    return runProgram("docker-compose", args);
  }

  function service(name: string): Service {
    const found = services[name];
    if (found === undefined) throw new Error(`expected a service ${name}`);
    return found;
  }

  it("makes its secrets once, for their owner alone, and starts nothing without them", async () => {
    expect(Object.keys(secrets)).to.deep.equal(["DATABASE_PASSWORD", "REPLICA_SECRET"]);
    for (const secret of Object.values(secrets)) expect(secret).to.match(/^[0-9a-f]{64}$/);
    expect(new Set(Object.values(secrets))).to.have.property("size", 2);
    expect((await stat(join(folder, ".env"))).mode & 0o777).to.equal(0o600);
    const kept = await readFile(join(folder, ".env"));
    await writeFile(join(folder, ".env"), "");
    const without = await readCompose();
    await writeFile(join(folder, ".env"), kept);
    expect(without.code).to.not.equal(0);
    expect(without.stderr).to.include("of the file .env");
  });

  it("gives each replica a name, a folder and the secrets, and publishes the ports of the balancer alone", () => {
    const single = parse(readFileSync(join(folderOfFiles, "compose.yaml"), "utf8")) as {
      readonly services: { readonly gateway: Service };
    };
    const password = secrets.DATABASE_PASSWORD;
    for (const name of members) {
      const { image, hostname, environment, ports, healthcheck } = service(name);
      expect([image, hostname, ports]).to.deep.equal([single.services.gateway.image, name, undefined]);
      expect(environment).to.deep.equal({
        DATABASE_URL: `postgres://gateway:${password}@database/gateway`,
        REPLICA_SECRET: secrets.REPLICA_SECRET,
      });
      expect(healthcheck).to.have.deep.property("test", (single.services.gateway.healthcheck as { test: object }).test);
    }
    expect(service("database").environment).to.include({ POSTGRES_USER: "gateway", POSTGRES_PASSWORD: password });
    const data = members.map((name) => service(name).volumes.find((volume) => volume.includes(":/var/lib/gateway:")));
    expect(new Set(data)).to.have.property("size", members.length);
    expect(service("database").ports).to.equal(undefined);
    for (const port of service("balancer").ports ?? []) expect(port).to.match(/^127\.0\.0\.1:(\d+):\1\/tcp$/);
    expect(service("balancer").ports).to.have.length(3);
  });

  it("mounts what the configuration of its comment names, which a gateway accepts", async () => {
    const [data = "", notes = "", backups = ""] = text.match(/(?<=^#.*)\/var\/lib\/[\w./-]*\w/gm) ?? [];
    const store = /^# {3}(store: .*)$/m.exec(text)?.[1] ?? "";
    const edits: readonly (readonly [RegExp, string])[] = [
      [/^( +)host: .*$/m, "$1host: 0.0.0.0\n$1admin_host: 0.0.0.0\n$1allowed_hosts: [localhost]"],
      [/^data_dir: .*$/m, `data_dir: ${data}`],
      [/^ +mark: .*\n/m, ""],
      [/^ +path: witness$/m, `      path: ${notes}`],
      [/^ +backup_dir: .*$/m, `  backup_dir: ${backups}`],
    ];
    const own = await mkdtemp(join(tmpdir(), "compose-config-"));
    try {
      await cp(world.folder, own, { recursive: true });
      let config = await readFile(join(own, "gateway.yaml"), "utf8");
      for (const [line, instead] of edits) {
        expect(config).to.match(line);
        config = config.replace(line, instead);
      }
      await writeFile(join(own, "gateway.yaml"), `${config}\n${store}\n`);
      const env = { ...service("gateway-1").environment };
      const checked = await runCommand(["config", "check", join(own, "gateway.yaml")], env);
      expect(checked.code, checked.stdout + checked.stderr).to.equal(0);
    } finally {
      await rm(own, { recursive: true });
    }
    for (const name of members) {
      const places = new Map(service(name).volumes.map((volume) => volume.split(":").slice(-2) as [string, string]));
      expect(places.get("/etc/gateway")).to.equal("ro");
      for (const path of [data, notes, backups])
        expect(places.get(path.split("/").slice(0, 4).join("/")), path).to.equal("rw");
    }
  });
});

describe("the balancer of the compose file, before replicas", function () {
  this.timeout(240_000);
  let site: ReplicaSite;
  let folder: string;
  let balancer: ChildProcess;
  let url: string;
  let proxy: PostgresProxy;

  before(async () => {
    site = await ReplicaSite.create(3_000);
    proxy = await PostgresProxy.start(site.group.postgres.socket);
    await site.group.start(0, { databaseUrl: proxy.urlOf("gateway") });
    await Promise.all([1, 2].map((index) => site.group.start(index)));
    await site.serves();
    folder = await mkdtemp(join(tmpdir(), "balancer-"));
    const ports = await freePorts(3);
    url = `http://127.0.0.1:${ports[0]}`;
    let shipped = readFileSync(join(folderOfFiles, "haproxy-replicas.cfg"), "utf8");
    for (const [at, port] of (
      [
        ["url", 8080],
        ["adminUrl", 8081],
        ["metricsUrl", 8082],
      ] as const
    ).entries()) {
      const [name, number] = port;
      expect(shipped.split(`\tbind :${number}\n`)).to.have.length(2);
      shipped = shipped.replace(`bind :${number}`, `bind 127.0.0.1:${ports[at]}`);
      for (const [index, member] of members.entries()) {
        expect(shipped.split(`${member}:${number}`)).to.have.length(2);
        shipped = shipped.replace(`${member}:${number}`, new URL(site.group.member(index)[name]).host);
      }
    }
    await writeFile(join(folder, "haproxy.cfg"), shipped);
    balancer = spawn("haproxy", ["-f", join(folder, "haproxy.cfg")], { stdio: "ignore" });
    await eventually("the balancer to lead to every port", async () => {
      const found = await Promise.all(
        ports.map((port) => fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)),
      );
      return found.every((response) => response?.status === 200);
    });
  });

  after(async () => {
    if (balancer !== undefined) {
      const exited = once(balancer, "exit");
      balancer.kill("SIGKILL");
      await exited;
    }
    await site.stop();
    proxy.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it("sends nothing to a replica that its database does not hear of, once it is found out", async () => {
    const { group } = site;
    expect(group.owner()).to.equal(0);
    proxy.cut();
    try {
      let answered = 0;
      let count = 0;
      await eventually("nine calls in a row that are answered", async () => {
        const { end } = await site.call(url, `row-${count++}`);
        answered = end === "answered" ? answered + 1 : 0;
        return answered === 9;
      });
      const row = Array.from({ length: 9 }, (_, at) => `row-${count - 9 + at}`);
      expect(await site.reached()).to.include.members(row);
      expect((await site.call(site.url(0), "fenced")).end).to.equal("EVIDENCE_UNAVAILABLE");
      expect(await site.reached()).to.not.include("fenced");
    } finally {
      proxy.heal();
    }
    await eventually("the former owner to forward", async () => (await probeReadiness(site.url(0))) === 200);
  });

  it("answers calls while the owner is killed, but for those under way at it", async () => {
    const { group } = site;
    const killed = group.owner();
    const calls = new SteadyCalls(site, url, "balanced", agents);
    await calls.answered(20);
    await group.member(killed).kill9();
    await calls.answered(20);
    const sent = await calls.end();
    expect(group.owner()).to.not.equal(killed);
    const lost = sent.filter(({ end }) => end !== "answered");
    // What was under way at the kill, one call of each agent; what the killed refuses goes to another one.
    expect(lost.length, JSON.stringify(lost)).to.be.at.most(agents);
    await site.expectSettled(sent, group.owner());
  });
});
