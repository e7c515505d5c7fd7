import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { GatewayError } from "../../../core/action/error.ts";
import type { GatewayConfig } from "../../../core/config/gateway-config.ts";
import { loadConfig } from "../../../core/config/load.ts";
import { faultsOf, loadText, withFile } from "./fixture.ts";

const environmentKey = "k".repeat(32);

describe("loadConfig(path, env)", () => {
  describe("when the file says next to nothing", () => {
    it("fills in every default", async () => {
      await withFile("log: {}\n", async (path) => {
        expect(await loadConfig(path, {})).to.deep.equal(defaults(path));
      });
    });

    it("lets nobody in and allows nothing", async () => {
      const config = await loadText("state: {enabled: false}\n");
      expect(config.keys).to.deep.equal([]);
      expect(config.mcpGateway).to.include({ requireAuth: true, anonymousTenant: null });
      expect(config.policy.defaultDecision).to.equal("block");
    });
  });

  it("gives backups to the tenant of all keys, to the one that is named, and to nobody where there are several", async () => {
    const tenantOf = async (tenants: readonly string[], named = ""): Promise<string | null> => {
      const keys = tenants.map(
        (tenant, at) => `{id: k${at}, tenant: ${tenant}, role: admin, key_hash: "sha256:${`${at}`.repeat(64)}"}`,
      );
      return (await loadText(`keys: [${keys.join(", ")}]\nresilience: {enabled: true${named}}`)).resilience.tenant;
    };
    expect(await tenantOf(["acme", "acme"])).to.equal("acme");
    expect(await tenantOf(["acme", "other"])).to.equal(null);
    expect(await tenantOf(["acme", "other"], ", tenant: other")).to.equal("other");
  });

  it("takes one place for a list of one, and leaves out what is not stated", async () => {
    const config = await loadText(
      "upstreams: [{name: a, transport: http, url: 'https://a.example', facts: {f: {url: u, path: [p, /q/*]}, s: {sql: q}}}]",
    );
    expect(config.upstreams[0]?.facts).to.deep.equal({ f: { url: ["u"], path: ["p", "/q/*"] }, s: { sql: "q" } });
  });

  describe("when the file uses every key", () => {
    const env = {
      ACME_REVIEWER_KEY: environmentKey,
      TICKETS_AUTHORIZATION: "Bearer t",
      NOTARY_AUTHORIZATION: "Bearer n",
      COLLECTOR_AUTHORIZATION: "Bearer c",
      ON_CALL_WEBHOOK_SECRET: `whsec_${"A".repeat(32)}`,
      OPENAI_API_KEY: "sk-openai",
      ANTHROPIC_API_KEY: "sk-anthropic",
      CONSOLE_CLIENT_SECRET: "secret-of-the-console",
      PATH: "/bin",
      HOME: "/root",
    };
    const file = "core/config/gateway.example.yaml";

    it("loads the shipped example", async () => {
      const config = await loadConfig(file, env);
      expect(config.keys.map(({ id, keyHash }) => [id, keyHash])[1]).to.deep.equal([
        "reviewer",
        contentDigest(environmentKey),
      ]);
      expect(config.policy.packs).to.deep.equal([
        { path: resolve("policy-packs/baseline"), mode: "enforce", settings: {}, shadowRules: [] },
        {
          path: resolve("policy-packs/session-watch"),
          mode: "enforce",
          settings: { settled_actions: 100 },
          shadowRules: ["session-watch.secret-model"],
        },
        {
          path: resolve("policy-packs/candidate"),
          mode: "shadow",
          settings: { protected_paths: ["/etc", "/root"] },
          shadowRules: [],
        },
      ]);
    });

    it("gives each witness its place, and the headers the file names", async () => {
      const { witnesses } = (await loadConfig(file, env)).evidence;
      const origins = { Authorization: { variable: "NOTARY_AUTHORIZATION" } };
      expect(witnesses).to.deep.equal([
        { type: "file", path: "/mnt/vault/evidence", name: "vault", intervalMs: 60_000, origins: {} },
        {
          type: "http",
          url: "https://notary.example.com/notes",
          headers: { Authorization: "Bearer n" },
          name: "notary",
          intervalMs: 300_000,
          origins,
        },
        { type: "git", repository: "/srv/git/evidence.git", name: "history", intervalMs: 60_000, origins: {} },
      ]);
    });

    it("tells the collector by the headers the file names", async () => {
      const { telemetry } = await loadConfig(file, env);
      expect(telemetry).to.deep.equal({
        endpoint: "https://collector.internal.example:4318",
        protocol: "http/protobuf",
        headers: { Authorization: "Bearer c" },
        origins: { Authorization: { variable: "COLLECTOR_AUTHORIZATION" } },
        timeoutMs: 10_000,
        samplePercent: 25,
        maxQueuedSpans: 8_192,
        metricsIntervalMs: 60_000,
        exemplars: true,
      });
    });

    it("gives a process the variables the file names and no others", async () => {
      const { upstreams } = await loadConfig(file, { ...env, OTHER: "x" });
      expect(upstreams[0]).to.deep.include({
        transport: "stdio",
        command: "npx",
        env: { NODE_ENV: "production", PATH: "/bin", HOME: "/root" },
        origins: { NODE_ENV: "file", PATH: { variable: "PATH" }, HOME: { variable: "HOME" } },
      });
    });

    it("adds secret headers to plain ones", async () => {
      const { upstreams } = await loadConfig(file, env);
      expect(upstreams[1]).to.deep.include({
        transport: "http",
        url: "https://tickets.internal.example/mcp",
        headers: { "X-Team": "platform", Authorization: "Bearer t" },
        origins: { "X-Team": "file", Authorization: { variable: "TICKETS_AUTHORIZATION" } },
      });
    });
  });

  it("resolves relative paths against the file's folder, and leaves bare program names alone", async () => {
    const text =
      "data_dir: state\nupstreams:\n  - {name: a, transport: stdio, command: ./run, cwd: work}\n" +
      "  - {name: b, transport: stdio, command: run}\n  - {name: c, transport: stdio, command: /bin/run}\n";
    await withFile(text, async (path) => {
      const config = await loadConfig(path, {});
      const [a, b, c] = config.upstreams;
      expect(config.dataDir).to.equal(join(dirname(path), "state"));
      expect(a).to.include({ command: join(dirname(path), "run"), cwd: join(dirname(path), "work") });
      expect(b).to.include({ command: "run" }).and.not.have.property("cwd");
      expect(c).to.include({ command: "/bin/run" });
    });
  });

  it("lets a leftover anonymous tenant in only where keys are not required", async () => {
    const mcpOf = async (auth: boolean): Promise<GatewayConfig["mcpGateway"]> =>
      (await loadText(`mcp_gateway: {require_auth: ${auth}, anonymous_tenant: guests}\n`)).mcpGateway;
    expect(await mcpOf(true)).to.include({ requireAuth: true, anonymousTenant: null });
    expect(await mcpOf(false)).to.include({ requireAuth: false, anonymousTenant: "guests" });
  });

  it("freezes the configuration to its last leaf", async () => {
    const { policy, source } = await loadText(
      "policy: {plugins: [{path: p, phases: [input], mode: shadow, taints: [web]}, {path: q}]}\n",
    );
    const folder = dirname(source ?? "");
    expect(policy.plugins).to.deep.equal([
      { path: join(folder, "p"), mode: "shadow", phases: ["input"], taints: ["web"], settings: {} },
      { path: join(folder, "q"), mode: "enforce", phases: ["list", "input", "output"], taints: [], settings: {} },
    ]);
    const config = await loadText("policy: {packs: [{path: p, settings: {a: {b: [1]}}}]}\n");
    expect(everyPart(config).every(Object.isFrozen)).to.equal(true);
  });

  it("keeps `__proto__` a plain key", async () => {
    const config = await loadText('policy: {packs: [{path: p, settings: {"__proto__": {polluted: true}}}]}\n');
    expect(Object.keys(config.policy.packs[0]?.settings ?? {})).to.deep.equal(["__proto__"]);
    expect({}).to.not.have.property("polluted");
  });

  it("collects all faults, in the order of the file, as text and as data", async () => {
    const text = "log:\n  level: loud\nlisten:\n  gateway_port: 70000\n  admin_port: 0\nextra: 1\n";
    await withFile(text, async (path) => {
      const error = await loadConfig(path, {}).catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(GatewayError).with.property("code", "CONFIG_INVALID");
      const { detail, data } = error as GatewayError;
      const faults = data?.faults as readonly unknown[];
      expect(detail?.replaceAll(path, "f").split("\n")).to.deep.equal([
        "f:2:10: log.level: expected `debug`, `info`, `warn`, `error` or `silent`, got `loud`",
        "f:4:17: listen.gateway_port: expected an integer from 0 to 65535, got the number `70000`",
        "f:6:1: extra: unknown key, expected one of `listen`, `egress`, `data_dir`, `state`, `store`, `keys`, `mcp_gateway`, `oauth`, `console`, `upstreams`, `effects`, `providers`, `model_gateway`, `usage`, `policy`, `extensions`, `sessions`, `tickets`, `evidence`, `approvals`, `hooks`, `resilience`, `reports`, `telemetry`, `limits`, `log`",
      ]);
      expect(faults).to.have.length(3);
      expect(faults[0]).to.deep.equal({
        file: path,
        line: 2,
        column: 10,
        path: "log.level",
        message: "expected `debug`, `info`, `warn`, `error` or `silent`, got `loud`",
      });
    });
  });

  it("tells a hundred faults and counts the others", async () => {
    const text = Array.from({ length: 130 }, (_, index) => `x${index}: 1\n`).join("");
    const faults = await faultsOf(text);
    expect(faults).to.have.length(101);
    expect(faults.at(-1)).to.equal("and 30 more");
  });

  it("names the folders of packs and plugins that do not exist, where asked to", async () => {
    const text = "policy:\n  packs: [{path: gone}]\n  plugins: [{path: gateway.yaml}]\n";
    await withFile(text, async (path) => {
      await loadConfig(path, {});
      const error = await loadConfig(path, {}, { requireFolders: true }).catch((thrown: unknown) => thrown);
      expect((error as GatewayError).detail?.replaceAll(dirname(path), "F").split("\n")).to.deep.equal([
        "F/gateway.yaml:2:18: policy.packs[0].path: expected a folder, got no such file: F/gone",
        "F/gateway.yaml:3:20: policy.plugins[0].path: expected a folder, got a file: F/gateway.yaml",
      ]);
    });
  });

  describe("when there is no such file to read", () => {
    it("says that it is missing", async () => {
      await expectDetail("/nowhere/gateway.yaml", "/nowhere/gateway.yaml: expected a readable file, got no such file");
    });

    it("says that it is a directory", async () => {
      await expectDetail(tmpdir(), `${tmpdir()}: expected a file, got a directory`);
    });

    it("refuses a device instead of waiting for its end", async () => {
      await expectDetail("/dev/zero", "/dev/zero: expected a file, got a special file");
    });
  });

  describe("when the bytes are not a text", () => {
    const table: [string, string | Uint8Array, string][] = [
      ["invalid UTF-8", Uint8Array.of(0x61, 0x3a, 0x20, 0xff), "expected UTF-8, got invalid bytes"],
      ["a byte order mark", "\ufefflog: {}\n", "expected no byte order mark, got one"],
      ["NUL", "log: {} # \0\n", "expected text, got a NUL character"],
      ["more than 1 MiB", `#${"x".repeat(1_048_576)}`, "expected at most 1048576 bytes, got 1048577"],
    ];
    for (const [name, content, text] of table) {
      it(`refuses ${name}`, async () => {
        expect(await faultsOf(content)).to.deep.equal([`gateway.yaml: ${text}`]);
      });
    }

    it("takes exactly 1 MiB", async () => {
      expect(await faultsOf(`log: {}\n#${"x".repeat(1_048_567)}`)).to.deep.equal([]);
    });
  });
});

async function expectDetail(path: string, detail: string): Promise<void> {
  const error = await loadConfig(path, {}).catch((thrown: unknown) => thrown);
  expect(error).to.be.instanceOf(GatewayError).with.property("code", "CONFIG_INVALID");
  expect((error as GatewayError).detail).to.equal(detail);
}

function everyPart(value: unknown): object[] {
  if (typeof value !== "object" || value === null) return [];
  return [value, ...Object.values(value).flatMap(everyPart)];
}

function defaults(source: string): GatewayConfig {
  return {
    source,
    listen: {
      host: "127.0.0.1",
      adminHost: "127.0.0.1",
      gatewayPort: 8080,
      adminPort: 8081,
      metricsPort: 8082,
      allowedHosts: [],
      allowedOrigins: [],
    },
    egress: { privateHosts: [] },
    dataDir: join(dirname(source), "data"),
    store: null,
    state: { enabled: true, mark: null },
    keys: [],
    oauth: null,
    mcpGateway: {
      requireAuth: true,
      anonymousTenant: null,
      metaPassthrough: [],
      maxSessions: 1000,
      sessionIdleMs: 1_800_000,
    },
    upstreams: [],
    effects: {},
    providers: [
      {
        type: "mock",
        keyVariable: null,
        name: "mock",
        enabled: true,
        models: ["mock"],
        firstByteTimeoutMs: 60_000,
        idleTimeoutMs: 30_000,
        maxTimeoutMs: 900_000,
        maxRetries: 2,
        maxConnections: 256,
        breaker: { failures: 5, restMs: 30_000 },
      },
    ],
    modelGateway: {
      toolPassthrough: "off",
      providerTools: [],
      tools: { agents: [], capabilities: {}, facts: {} },
      maxConcurrent: 256,
      holdbackBytes: 256,
      dropHints: [
        "cache_control",
        "context_management",
        "eager_input_streaming",
        "is_error",
        "metadata",
        "output_config.effort",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning_effort",
        "safety_identifier",
        "service_tier",
        "store",
        "thinking",
        "verbosity",
      ],
      routes: [],
    },
    usage: { requestsPerMinute: 120, tokensPerMinute: 2_000_000, budgets: [] },
    policy: { packs: [], plugins: [], engines: [], defaultDecision: "block", pluginWorkers: 2, deadlineMs: 250 },
    console: { publicUrl: null, recentSignInMs: 900_000, oidc: null },
    extensions: { strict: false, trustPolicy: null, trustFiles: [] },
    sessions: {
      gatewayTenant: null,
      reviewFlood: { reviews: 5, windowMs: 300_000 },
      risk: { killAt: 80, windowMs: 1_800_000, mode: "enforce" },
      drift: { mode: "enforce", decision: "review" },
      requireTask: false,
      taskSigners: [],
      maxActive: 10_000,
      idleRetentionMs: 30 * 86_400_000,
    },
    tickets: { defaultTtlSeconds: 300, maxTtlSeconds: 3_600, maxLive: 1_000, allowSelfIssue: false },
    evidence: {
      storeValues: true,
      storeLabels: true,
      redactFields: [],
      witnesses: [],
      checkpointHeartbeatMs: 3_600_000,
      retentionDays: 0,
      retentionBytes: 0,
    },
    approvals: {
      reviewMs: 1_800_000,
      useMs: 900_000,
      maxLive: 1_000,
      maxHeldBytes: 67_108_864,
      allowSelfReview: false,
      allowBreakGlass: false,
      holdMs: 0,
      reviewUrl: "http://127.0.0.1:8082/#/approvals/{id}",
      webhooks: [],
    },
    hooks: { maxWaitMs: 300_000, capabilities: [], dialects: [] },
    resilience: { enabled: false, tenant: null, backupDir: join(dirname(source), "backups"), keep: 7 },
    reports: null,
    telemetry: {
      endpoint: null,
      protocol: "http/protobuf",
      headers: {},
      origins: {},
      timeoutMs: 10_000,
      samplePercent: 100,
      maxQueuedSpans: 8_192,
      metricsIntervalMs: 60_000,
      exemplars: false,
    },
    limits: {
      bodyBytes: 4_194_304,
      jsonDepth: 64,
      jsonNodes: 10_000,
      modelJsonNodes: 100_000,
      jsonMembers: 10_000,
      jsonStringLength: 4_194_304,
      upstreamReplyBytes: 16_777_216,
      upstreamReplyNodes: 100_000,
      headersMs: 10_000,
      bodyMs: 25_000,
      keepAliveMs: 65_000,
      unreadMs: 30_000,
      maxConnections: 10_000,
      maxWebsockets: 1_000,
      maxUnauthenticatedWebsockets: 16,
      unauthenticatedPerMinute: 600,
      keySharePercent: 25,
      tenantSharePercent: 50,
      keyCallsPerMinute: 600,
      tenantCallsPerMinute: 6_000,
      keyCpuPercent: 25,
      tenantCpuPercent: 50,
      cpuBusyPercent: 75,
      adminRequestsPerMinute: 6_000,
      adminUnauthenticatedPerMinute: 600,
      drainMs: 15_000,
    },
    log: { level: "info" },
  };
}
