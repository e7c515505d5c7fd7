import { execFileSync } from "node:child_process";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import type { DoctorCheck } from "../../../../core/cli/doctor/finding.ts";
import {
  checkCollector,
  checkIssuer,
  checkModelProviders,
  checkUpstreams,
  checkWebhooks,
  checkWitnesses,
  reachProblem,
} from "../../../../core/cli/doctor/peer.ts";
import type { GatewayConfig } from "../../../../core/config/gateway-config.ts";
import { loadConfig } from "../../../../core/config/load.ts";
import { egress } from "../../../support/egress.ts";
import { freePort } from "../../../support/free-port.ts";
import { otherDisk } from "../../../support/other-disk.ts";
import { type DoctorWorld, openDoctorWorld, statuses, told } from "./world.ts";

describe("doctor: who has to be there", () => {
  let world: DoctorWorld;
  let port: number;

  before(async () => {
    world = await openDoctorWorld();
  });

  beforeEach(async () => {
    port = await freePort();
  });

  after(() => world.remove());

  /** Nobody listens: found. Somebody does: gone. */
  async function expectMended(look: DoctorCheck, config: GatewayConfig, status: "warn" | "fail"): Promise<void> {
    const target = await world.target(config);
    const found = told(await look(target), status);
    expect(found).to.include(`at 127.0.0.1:${port} cannot be reached: connection refused`).and.not.include("hidden");
    const server = await listen(createServer(), port);
    expect(statuses(await look(target))).to.deep.equal(["ok"]);
    await close(server);
  }

  async function configured(yaml: string, env: NodeJS.ProcessEnv = {}): Promise<GatewayConfig> {
    const path = join(world.folder, "other.yaml");
    await writeFile(path, yaml);
    return loadConfig(path, env);
  }

  describe("oauth", () => {
    const key = `keys: [{id: a, tenant: acme, role: admin, key_hash: 'sha256:${"a".repeat(64)}'}]`;
    const rest = "audience: https://gateway.example/mcp, tenant: acme";

    it("is nothing to check where only keys authenticate", async () => {
      expect(statuses(await checkIssuer(await world.target(await configured(key))))).to.deep.equal(["ok"]);
    });

    it("reaches the issuer, or where its keys are said to be", async () => {
      const url = `http://127.0.0.1:${port}/hidden`;
      for (const place of [`issuer: '${url}'`, `issuer: https://login.example, jwks_uri: '${url}'`]) {
        await expectMended(checkIssuer, await configured(`${key}\noauth: {${place}, ${rest}}`), "fail");
      }
    });
  });

  describe("upstreams", () => {
    it("says how many of a running gateway are starting or down, and is silent once all are up", async () => {
      let counts = { starting: 1, down: 2 };
      const server = createHttpServer((_, response) => {
        const { starting, down } = counts;
        response.end(`gateway_upstreams{state="starting"} ${starting}\ngateway_upstreams{state="down"} ${down}\n`);
      });
      await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
      const { listen } = await configured("listen: { metrics_port: 0 }");
      const upstreams = (await configured("upstreams: [{name: a, transport: stdio, command: node}]")).upstreams;
      const target = await world.target({ upstreams, listen: { ...listen, metricsPort: port } }, process.env);
      const running = { ...target, holder: { pid: 1, name: "node" } };
      const fix = "`gateway upstreams list` says which, and why";
      expect(told(await checkUpstreams(running), "warn")).to.equal(
        `1 of the running gateway: starting; ${fix}\n2 of the running gateway: down; ${fix}`,
      );
      expect(statuses(await checkUpstreams(target)), "of none that runs").to.deep.equal(["ok"]);
      counts = { starting: 0, down: 0 };
      expect(statuses(await checkUpstreams(running))).to.deep.equal(["ok"]);
      server.close();
      expect(statuses(await checkUpstreams(running)), "without an answer").to.deep.equal(["ok"]);
    });

    it("finds a URL that nobody answers, and tells no path of it", async () => {
      const config = await configured(
        `upstreams: [{name: a, transport: http, url: "http://127.0.0.1:${port}/hidden"}]`,
      );
      await expectMended(checkUpstreams, config, "fail");
    });

    it("finds a program that is nowhere, and one that may not be run, until they are there", async () => {
      const config = await configured("upstreams: [{name: a, transport: stdio, command: some-server}]");
      const bin = join(world.folder, "bin");
      const path = join(bin, "some-server");
      const target = await world.target(config, { PATH: `/nowhere:${bin}` });
      expect(told(await checkUpstreams(target), "fail")).to.include("`some-server` is not in PATH");
      await mkdir(bin);
      await writeFile(path, "#!/bin/sh\n", { mode: 0o644 });
      expect(statuses(await checkUpstreams(target))).to.deep.equal(["fail"]);
      await chmod(path, 0o755);
      expect(told(await checkUpstreams(target), "ok")).to.include(path);
    });

    it("finds a folder that is not there, a path that is none, and that there is no server at all", async () => {
      const config = await configured("upstreams: [{name: a, transport: stdio, command: sh, cwd: gone}]");
      const target = await world.target(config, { PATH: process.env.PATH });
      expect(told(await checkUpstreams(target), "fail")).to.include("its `cwd`");
      await mkdir(join(world.folder, "gone"));
      expect(statuses(await checkUpstreams(target))).to.deep.equal(["ok"]);
      const none = await configured("upstreams: [{name: a, transport: stdio, command: ./bin/nothing}]");
      expect(told(await checkUpstreams(await world.target(none)), "fail")).to.include("may run");
      expect(statuses(await checkUpstreams(await world.target({ upstreams: [] })))).to.deep.equal(["warn"]);
    });
  });

  it("finds a model provider that a route names and nobody answers for", async () => {
    const provider = `{name: a, type: openai, base_url: "http://127.0.0.1:${port}/hidden", models: [m]}`;
    const routed = await configured(
      `providers: [${provider}]\nmodel_gateway: {routes: [{model: m, providers: [{name: a}]}]}`,
    );
    await expectMended(checkModelProviders, routed, "warn");
    const unrouted = await configured(`providers: [${provider}]`);
    expect(statuses(await checkModelProviders(await world.target(unrouted)))).to.deep.equal(["ok"]);
  });

  it("finds a webhook that nobody answers, and tells nothing of its URL but the host", async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
    const key = `{id: a, tenant: acme, role: admin, key_hash: "sha256:${"0".repeat(64)}"}`;
    const hook = `{name: a, tenant: acme, url: "http://127.0.0.1:${port}/hidden?hidden", secrets_env: [SECRET]}`;
    const page = 'review_url: "https://review.example/{id}", ';
    const config = await configured(`keys: [${key}]\napprovals: {${page}webhooks: [${hook}]}`, { SECRET: secret });
    await expectMended(checkWebhooks, config, "warn");
    const bare = await configured(`keys: [${key}]\napprovals: {webhooks: [${hook}]}`, { SECRET: secret });
    expect(told(await checkWebhooks(await world.target(bare)), "warn"))
      .to.include("on this machine alone")
      .and.include("set `console.public_url`");
  });

  it("finds a collector of telemetry that nobody answers for", async () => {
    const config = await configured(`telemetry: {endpoint: "http://127.0.0.1:${port}/hidden"}`);
    await expectMended(checkCollector, config, "warn");
    expect(statuses(await checkCollector(await world.target()))).to.deep.equal(["ok"]);
  });

  describe("witnesses", () => {
    it("finds that there is none, one that nobody answers for, and one on the same disk", async () => {
      const made = await world.target();
      expect(told(await checkWitnesses(made), "warn"), "beside the data folder").to.include("other storage");
      const none = await world.target({ evidence: { ...made.config.evidence, witnesses: [] } });
      expect(told(await checkWitnesses(none), "warn")).to.include("evidence.witnesses");
      const http = await configured(
        `evidence: {witnesses: [{name: a, type: http, url: "http://127.0.0.1:${port}/hidden"}]}`,
      );
      await expectMended(checkWitnesses, http, "fail");
      const file = async (path: string): Promise<GatewayConfig> =>
        configured(`data_dir: data\nevidence: {witnesses: [{name: a, type: file, path: ${path}}]}`);
      expect(told(await checkWitnesses(await world.target(await file("beside"))), "warn")).to.include("other storage");
      expect(statuses(await checkWitnesses(await world.target(await file(`${otherDisk}/beside`))))).to.deep.equal([
        "ok",
      ]);
    });

    it("finds a repository that is none, until it is made", async () => {
      const config = await configured("evidence: {witnesses: [{name: a, type: git, repository: notes.git}]}");
      expect(told(await checkWitnesses(await world.target(config)), "fail")).to.include("git init --bare");
      execFileSync("git", ["init", "--quiet", "--bare", join(world.folder, "notes.git")]);
      expect(statuses(await checkWitnesses(await world.target(config)))).to.deep.equal(["ok"]);
    });
  });

  describe("reachProblem(url, egress)", () => {
    it("finds a name that nobody has", async () => {
      expect(await reachProblem("https://nobody.invalid/", egress)).to.match(/no such host|cannot be looked up/);
    });

    it("finds a certificate that nobody vouches for", async () => {
      const [key, cert] = ["key.pem", "cert.pem"].map((name) => join(world.folder, `tls-${name}`)) as [string, string];
      const made = ["req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "1", "-subj", "/CN=localhost"];
      execFileSync("openssl", [...made, "-keyout", key, "-out", cert], { stdio: "ignore" });
      const server = createSecureServer({ key: await readFile(key), cert: await readFile(cert) });
      await listen(server, port);
      expect(await reachProblem(`https://localhost:${port}/`, egress)).to.match(/SELF_SIGNED/);
      await close(server);
    });

    it("waits for a while, and no longer", async () => {
      const server = await listen(
        createServer((socket) => socket.resume()),
        port,
      );
      expect(await reachProblem(`https://127.0.0.1:${port}/`, egress)).to.equal("no answer within 3 s");
      await close(server);
    });
  });
});

function listen<T extends Server>(server: T, port: number): Promise<T> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, () => resolve(server));
  });
}

async function close(server: Server): Promise<void> {
  await new Promise((resolve) => server.close(resolve));
  expect((server.address() as AddressInfo | null)?.port).to.equal(undefined);
}
