import { execFileSync } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { checks, runChecks } from "../../../../core/cli/doctor/check.ts";
import { runCommand } from "../../../support/command-host.ts";
import { program } from "../run.ts";
import { type DoctorWorld, openDoctorWorld } from "./world.ts";

describe("gateway doctor", () => {
  let world: DoctorWorld;

  before(async () => {
    world = await openDoctorWorld();
  });

  after(() => world.remove());

  it("finds nothing that fails in what `gateway init` makes, one line a finding, and ends with 0", async () => {
    const whole = await openDoctorWorld({ whole: true });
    const { code, stdout, stderr } = await runCommand(["doctor", "--config", whole.configPath], {
      PATH: process.env.PATH ?? "",
    });
    await whole.remove();
    expect(stdout).to.not.match(/^fail/m);
    expect(stdout).to.include("8 packs and 2 plugins load and pass their tests");
    expect(code).to.equal(0);
    for (const check of ["node", "configuration", ...Object.keys(checks)]) expect(stdout).to.include(` ${check} `);
    expect(stdout).to.match(/^(?:(?:ok|warn|fail) +\S.*\n)+$/);
    expect(stderr).to.match(/^gateway: 0 failed, \d+ warnings?, \d+ ok\n$/);
  });

  it("ends with 1 where something failed, until it is mended", async () => {
    await chmod(world.dataDir, 0o755);
    const broken = await runCommand(["doctor", "--config", world.configPath]);
    expect(broken.code).to.equal(1);
    expect(broken.stdout).to.match(/^fail {2}permissions +other users may open .*; `chmod 700 /m);
    await chmod(world.dataDir, 0o700);
    expect((await runCommand(["doctor", "--config", world.configPath])).code).to.equal(0);
  });

  it("tells every fault of a configuration that cannot be read, and goes no further", async () => {
    const path = join(world.folder, "bad.yaml");
    await writeFile(path, "log: {level: loud}\nlisten: {host: 0.0.0.0}\n");
    const { code, stdout } = await runCommand(["doctor", "--config", path, "--json"]);
    const { ok, findings } = JSON.parse(stdout) as {
      ok: boolean;
      findings: { check: string; status: string; text: string }[];
    };
    expect([code, ok]).to.deep.equal([1, false]);
    expect(findings.map(({ check, status }) => `${check} ${status}`)).to.deep.equal([
      "node ok",
      "configuration fail",
      "configuration fail",
      "configuration fail",
    ]);
    expect(findings.map(({ text }) => text).join()).to.include("bad.yaml:1:14: log.level");
  });

  it("finds keys that are given twice or are none, and variables that are not set", async () => {
    const path = join(world.folder, "keys.yaml");
    const hash = (digit: string): string => `"sha256:${digit.repeat(64)}"`;
    const key = (id: string, keyHash: string): string => `{id: ${id}, tenant: acme, role: admin, key_hash: ${keyHash}}`;
    const provider = '{name: a, type: openai, base_url: "http://localhost:1", api_key_env: UNSET_KEY, models: [m]}';
    await writeFile(path, `keys: [${key("a", hash("1"))}, ${key("b", hash("1"))}]\nproviders: [${provider}]\n`);
    const { stdout } = await runCommand(["doctor", "--config", path]);
    expect(stdout).to.match(/^fail {2}configuration +.*keys\[1\].*a key of its own/m);
    expect(stdout).to.match(/^fail {2}configuration +.*`UNSET_KEY` to hold .* got no such variable/m);
    await writeFile(path, `keys: [${key("a", "agw_pasted-into-the-wrong-place")}]\n`);
    const pasted = await runCommand(["doctor", "--config", path]);
    expect(pasted.stdout)
      .to.match(/^fail {2}configuration +.*key_hash/m)
      .and.not.include("agw_pasted");
  });

  it("tells no secret of a configuration, in text or JSON", async () => {
    const path = join(world.folder, "secrets.yaml");
    const canary = "canary-0123456789abcdefghijklmnopqrstuvwxyz";
    const secrets = { PROVIDER_KEY: canary, HEADER: `Bearer ${canary}`, GATEWAY_API_KEY: canary, MY_KEY: canary };
    await writeFile(
      path,
      `
listen: {gateway_port: 0, admin_port: 0, metrics_port: 0}
keys: [{id: a, tenant: acme, role: viewer, key_env: MY_KEY}]
upstreams:
  - {name: a, transport: http, url: "http://127.0.0.1:1/${canary}?${canary}", headers_env: {Authorization: HEADER}}
providers: [{name: p, type: openai, base_url: "http://127.0.0.1:1/${canary}", api_key_env: PROVIDER_KEY, models: [m]}]
model_gateway: {routes: [{model: m, providers: [{name: p}]}]}
telemetry: {endpoint: "http://127.0.0.1:1/${canary}", headers_env: {Authorization: HEADER}}
evidence: {witnesses: [{name: w, type: http, url: "http://127.0.0.1:1/${canary}", headers_env: {Authorization: HEADER}}]}
`,
    );
    for (const more of [[], ["--json"]]) {
      const { stdout, stderr } = await runCommand(["doctor", "--config", path, ...more], secrets);
      expect(stdout.match(/127\.0\.0\.1:1 cannot be reached/g)).to.have.lengthOf(4);
      expect(stdout + stderr).to.not.include("canary");
    }
  });

  it("looks at local mode without a file, and makes nothing of it", async () => {
    const folder = await mkdtemp(join(tmpdir(), "doctor-local-"));
    const data = join(folder, "data");
    const { code, stdout } = await runCommand(["doctor", "--data", data, "--port", "0"]);
    expect(code).to.equal(0);
    expect(stdout).to.match(/^ok {4}keys +two are created at the first start$/m);
    expect(await readFile(data).catch((cause) => cause.code)).to.equal("ENOENT");
    await rm(folder, { recursive: true });
  });

  it("shows names that hide something as what they are", async () => {
    const path = join(world.folder, "odd.yaml");
    await writeFile(
      path,
      'upstreams: [{name: a, transport: stdio, command: "no\\u202Esuch"}]\nlisten: {gateway_port: 0, admin_port: 0, metrics_port: 0}\n',
    );
    const { stdout } = await runCommand(["doctor", "--config", path]);
    expect(stdout).to.include("`no\\u{202e}such` is not in PATH").and.not.include("\u202e");
  });

  it("is coloured on a terminal, and nowhere else", async () => {
    const path = join(world.folder, "plain.yaml");
    const keys = `[{id: a, tenant: acme, role: admin, key_hash: "sha256:${"1".repeat(64)}"}]`;
    await writeFile(path, `listen: {gateway_port: 0, admin_port: 0, metrics_port: 0}\nkeys: ${keys}\n`);
    const line = `'${process.execPath}' '${program}' doctor --config '${path}' 2> /dev/null`;
    const run = (env: NodeJS.ProcessEnv, command: string): string =>
      execFileSync("bash", ["--norc", "-c", command], {
        env: { PATH: process.env.PATH, TERM: "xterm", ...env },
        encoding: "utf8",
      });
    const terminal = `script -qec "${line}" /dev/null < /dev/null`;
    expect(run({}, terminal)).to.include("\u001b[32mok\u001b[39m");
    expect(run({ NO_COLOR: "1" }, terminal))
      .to.include("ok    node")
      .and.not.include("\u001b[3");
    expect(run({}, line)).to.include("ok    node").and.not.include("\u001b");
  });

  it("takes a check that does not come to an end for one that failed, and goes on", async () => {
    const found = await runChecks(await world.target(), 100);
    const late = found.filter(({ text }) => text.includes("no end within 100 ms"));
    expect(late.map(({ check, status }) => `${check} ${status}`)).to.include("clock fail");
    expect(found.at(-1)?.check).to.equal("reports");
  });

  it("takes a check that breaks for one that failed", async () => {
    const target = await world.target();
    const blind = { ...target, config: { ...target.config, listen: undefined, policy: undefined } };
    const found = await runChecks(blind as unknown as typeof target);
    const broken = found.filter(({ text }) => text.startsWith("cannot be checked"));
    expect(new Set(broken.map(({ check, status }) => `${check} ${status}`)))
      .to.include("ports fail")
      .and.include("extensions fail");
  });
});
