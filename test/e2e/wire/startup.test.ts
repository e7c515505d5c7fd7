import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { CommandHost } from "../../support/command-host.ts";
import { startGateway } from "../../support/gateway.ts";
import { send } from "../../support/wire.ts";
import { type Finished, runGateway } from "../../unit/cli/run.ts";
import { echoCall, effectsOf, keys, messageHeaders, openWorld, post, type World } from "./world.ts";

const ports = "gateway_port: 0, admin_port: 0, metrics_port: 0";
const key = `{ id: a, tenant: t, role: viewer, key_hash: "sha256:${"0".repeat(64)}" }`;
const exposed = "a loopback address";

/** A configuration with something empty or missing, and what the refusal to start says of it. */
const refusals: readonly [what: string, yaml: string, said: readonly string[]][] = [
  [
    "no allowed hosts",
    `listen: { ${ports}, allowed_hosts: [] }`,
    ["listen.allowed_hosts: expected at least one entry"],
  ],
  [
    "no allowed origins",
    `listen: { ${ports}, allowed_origins: [] }`,
    ["listen.allowed_origins: expected at least one"],
  ],
  [
    "an empty allowed host",
    `listen: { ${ports}, allowed_hosts: [""] }`,
    ["listen.allowed_hosts[0]: expected a lower-case"],
  ],
  [
    "any allowed host",
    `listen: { ${ports}, allowed_hosts: ["*"] }`,
    ["listen.allowed_hosts[0]: expected a lower-case"],
  ],
  [
    "any allowed origin",
    `listen: { ${ports}, allowed_origins: ["*"] }`,
    ["listen.allowed_origins[0]: expected a lower-case"],
  ],
  ["null for allowed hosts", `listen: { ${ports}, allowed_hosts: null }`, ["listen.allowed_hosts: expected"]],
  ["no keys", `listen: { ${ports} }\nkeys: []`, ["keys: expected at least one entry"]],
  ["a key without a hash", "keys: [{ id: a, tenant: t, role: viewer }]", ["keys[0]: expected either `key_hash` or"]],
  ["an empty hash", 'keys: [{ id: a, tenant: t, role: viewer, key_hash: "" }]', ["keys[0].key_hash: expected"]],
  ["a key from no variable", "keys: [{ id: a, tenant: t, role: viewer, key_env: NO }]", ["got no such variable"]],
  ["a key from an empty variable", "keys: [{ id: a, tenant: t, role: viewer, key_env: EMPTY }]", ["got an empty one"]],
  [
    "an empty tenant",
    'keys: [{ id: a, tenant: "", role: viewer, key_env: EMPTY }]',
    ["keys[0].tenant: expected 1 to 64"],
  ],
  [
    "anonymous callers without a tenant",
    "mcp_gateway: { require_auth: false }",
    ["anonymous_tenant: expected a tenant"],
  ],
  ["no packs", "policy: { packs: [] }", ["policy.packs: expected at least one entry"]],
  ["a pack folder that is missing", "policy: { packs: [{ path: missing }] }", ["cannot be read: no such folder"]],
  ["a pack folder that is empty", "policy: { packs: [{ path: empty }] }", ["pack.yaml:1:1: expected a manifest"]],
  ["an empty pack path", 'policy: { packs: [{ path: "" }] }', ["policy.packs[0].path: expected 1 to 4096"]],
  ["nothing that judges, and allow", "policy: { default_decision: allow }", ["everything would be allowed"]],
  ["an empty file", "", ["expected a mapping, got nothing"]],
  [
    "a public bind without keys",
    "listen: { host: 0.0.0.0, allowed_hosts: [a] }",
    ["keys: expected at least one key", exposed],
  ],
  ["a public bind on IPv6", 'listen: { host: "::", allowed_hosts: [a] }', ["keys: expected at least one key", exposed]],
  [
    "a public bind by name",
    "listen: { host: all.example, allowed_hosts: [a] }",
    ["keys: expected at least one key", exposed],
  ],
  [
    "a public bind of the admin port",
    "listen: { admin_host: 0.0.0.0, allowed_hosts: [a] }",
    ["keys: expected at least one", exposed],
  ],
  ["an empty address", 'listen: { host: "" }', ["listen.host: expected an IP address or a host name"]],
  [
    "a public bind without hosts",
    `listen: { host: 0.0.0.0 }\nkeys: [${key}]`,
    ["listen.allowed_hosts: expected the names", exposed],
  ],
  [
    "a public bind without authentication",
    `listen: { host: 0.0.0.0, allowed_hosts: [a] }\nkeys: [${key}]\nmcp_gateway: { require_auth: false, anonymous_tenant: t }`,
    ["mcp_gateway.require_auth: expected `true`", exposed],
  ],
];

/** Those of them that are shown to end a process of their own; the others would end it the same way. */
const alone = ["no keys", "a key from no variable", "a pack folder that is missing", "a public bind without keys"];

describe("a configuration with a hole in it", () => {
  let folder: string;
  const ends = new Map<string, Finished>();
  before(async () => {
    const commands = new CommandHost();
    folder = await mkdtemp(join(tmpdir(), "gateway-startup-"));
    await mkdir(join(folder, "empty"));
    for (const [what, yaml] of refusals) {
      const file = join(folder, "gateway.yaml");
      await writeFile(file, yaml);
      const args = ["serve", "--config", file];
      const env = { EMPTY: "" };
      ends.set(what, await (alone.includes(what) ? runGateway(args, env) : commands.run(args, env)));
    }
    await commands.stop();
  });
  after(() => rm(folder, { recursive: true, force: true }));

  for (const [what, , said] of refusals) {
    it(`does not start with ${what}, and says so [S7, S11]`, () => {
      const end = ends.get(what);
      expect(end?.code).to.equal(1);
      expect(end?.stdout).to.equal("");
      for (const words of said) expect(end?.stderr).to.contain(words);
    });
  }
});

describe("a key of the configuration", () => {
  let commands: CommandHost;
  before(() => {
    commands = new CommandHost();
  });
  after(() => commands.stop());

  const key = { id: "a", tenant: "t", role: "viewer", key_hash: `sha256:${"0".repeat(64)}` };

  async function check(entry: object): Promise<Finished> {
    const folder = await mkdtemp(join(tmpdir(), "gateway-key-"));
    try {
      const file = join(folder, "gateway.yaml");
      await writeFile(file, JSON.stringify({ keys: [entry] }));
      return await commands.run(["config", "check", file]);
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  it("has a tenant [R2.1-1]", async () => {
    const { tenant: _, ...without } = key;
    const { code, stdout, stderr } = await check(without);
    expect(code).to.equal(1);
    expect(stdout + stderr).to.contain("keys[0].tenant: expected this key, got nothing");
  });

  it("has a role [R2.1-6]", async () => {
    const { role: _, ...without } = key;
    const { code, stdout, stderr } = await check(without);
    expect(code).to.equal(1);
    expect(stdout + stderr).to.contain("keys[0].role: expected this key, got nothing");
  });

  it("has one of three roles, and no other [R2.1-7]", async () => {
    for (const role of ["admin", "operator", "viewer"]) expect((await check({ ...key, role })).code).to.equal(0);
    for (const role of ["root", "Admin", "agent", ["admin"]]) {
      const { code, stdout, stderr } = await check({ ...key, role });
      expect(code).to.equal(1);
      expect(stdout + stderr).to.contain("keys[0].role: expected `admin`, `operator` or `viewer`, got");
    }
  });
});

describe("a configuration that leaves things out", () => {
  it("lets nobody in where there are no keys, and no foreign page where there are no origins [S7]", async () => {
    const gateway = await startGateway({ config: `listen: { ${ports} }` });
    try {
      for (const headers of [messageHeaders().slice(1), messageHeaders("admin")]) {
        const { status } = await send(gateway.url, { method: "POST", target: "/mcp", headers, body: echoCall() });
        expect(status).to.equal(401);
      }
      const admin = { target: "/admin/v1/policies", headers: [["x-api-key", keys.admin]] } as const;
      expect((await send(gateway.adminUrl, admin)).status).to.equal(401);
      for (const foreign of [
        ["host", "agents.example"],
        ["origin", "https://console.example"],
      ] as const) {
        expect((await send(gateway.url, { target: "/health", headers: [foreign] })).status).to.equal(403);
      }
    } finally {
      await gateway.stop();
    }
  });

  it("blocks every call where there is no policy [S7]", async () => {
    const world: World = await openWorld("", "", "");
    try {
      const effects = await effectsOf(world, async () => {
        const response = await post(world, echoCall());
        expect(response.status).to.equal(200);
        const { result } = JSON.parse(response.body);
        expect(result.isError).to.equal(true);
        expect(result.content[0].text).to.match(/^Blocked by policy: no rule allows it\. Nothing was executed\./);
      });
      expect(effects).to.deep.equal({ calls: 0, records: 1 });
    } finally {
      await world.stop();
    }
  });
});
