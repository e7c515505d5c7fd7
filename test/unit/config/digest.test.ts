import { expect } from "chai";
import { configDigest } from "../../../core/config/digest.ts";
import type { GatewayConfig, UpstreamConfig } from "../../../core/config/gateway-config.ts";
import { hashA, hashB, loadText } from "./fixture.ts";

const text = (headerVariable = "TOKEN", team = "a"): string =>
  "data_dir: /data\nupstreams:\n  - name: a\n    transport: http\n    url: https://a.example\n" +
  `    headers: {X-Team: ${team}}\n    headers_env: {Authorization: ${headerVariable}}\n`;
const witnessed = (variable: string): string =>
  "data_dir: /data\nevidence:\n  witnesses:\n    - {name: a, type: http, url: 'https://a.example', " +
  `headers_env: {Authorization: ${variable}}}\n`;
const told = (variable: string, more = "timeout_ms: 10000"): string =>
  `{data_dir: /data, telemetry: {endpoint: 'https://a.example', headers_env: {Authorization: ${variable}}, ${more}}}`;
const provided = (variable: string, more = "models: [m]"): string =>
  "data_dir: /data\nproviders:\n  - {name: a, type: openai, base_url: 'https://a.example', " +
  `api_key_env: ${variable}, ${more}${more.includes("models") ? "" : ", models: [m]"}}\n`;
const routed = (more: string): string =>
  `data_dir: /data\nmodel_gateway:\n  routes: [{model: mock, providers: [{name: mock}], ${more}}]\n`;
const env = {
  KEY: "sk-one-one",
  KEY_2: "sk-one-one",
  TOKEN: "Bearer one",
  TOKEN_2: "Bearer one",
};

async function digestOf(content: string, variables: NodeJS.ProcessEnv = env): Promise<string> {
  return configDigest(await loadText(content, variables));
}

describe("configDigest(config)", () => {
  it("is equal for the same text in another folder, spelling and order", async () => {
    const one = await digestOf("data_dir: /data\nlog: {level: warn}\n");
    expect(one).to.match(/^sha256:[0-9a-f]{64}$/);
    expect(await digestOf("# comment\nlog:\n  level: 'warn'\ndata_dir: /data\nstate: {}\n")).to.equal(one);
  });

  it("changes with any value", async () => {
    const texts = [
      "data_dir: /data",
      "data_dir: /data2",
      "{data_dir: /data, log: {level: debug}}",
      "{data_dir: /data, state: {enabled: false}}",
      "{data_dir: /data, limits: {drain_ms: 1}}",
      "{data_dir: /data, resilience: {enabled: true, backup_dir: /b}}",
      "{data_dir: /data, resilience: {enabled: true, backup_dir: /b, keep: 1}}",
      "{data_dir: /data, evidence: {store_values: false}}",
      "{data_dir: /data, evidence: {witnesses: [{name: a, type: file, path: /p}]}}",
      "{data_dir: /data, evidence: {witnesses: [{name: a, type: git, repository: /p}]}}",
      witnessed("TOKEN"),
      witnessed("TOKEN_2"),
      told("TOKEN"),
      told("TOKEN_2"),
      told("TOKEN", "sample_percent: 1"),
      told("TOKEN", "exemplars: true"),
      "{data_dir: /data, listen: {gateway_port: 1}}",
      "{data_dir: /data, sessions: {review_flood: {reviews: 0}}}",
      "{data_dir: /data, sessions: {review_flood: {window_seconds: 60}}}",
      "{data_dir: /data, mcp_gateway: {max_sessions: 1}}",
      "{data_dir: /data, policy: {plugins: [{path: /p}]}}",
      "{data_dir: /data, policy: {plugins: [{path: /p, phases: [input]}]}}",
      "{data_dir: /data, policy: {plugins: [{path: /p, taints: [a]}]}}",
      "{data_dir: /data, upstreams: [{name: a, transport: http, url: 'https://a.example'}]}",
      "{data_dir: /data, upstreams: [{name: a, transport: http, url: 'https://a.example', untrusted: [b]}]}",
      "{data_dir: /data, upstreams: [{name: a, transport: http, url: 'https://a.example', facts: {b: {shell: c}}}]}",
      "{data_dir: /data, upstreams: [{name: a, transport: http, url: 'https://a.example', facts: {b: {git: c}}}]}",
      "{data_dir: /data, policy: {packs: [{path: /p}]}}",
      "{data_dir: /data, policy: {packs: [{path: /p, settings: {a: 1}}]}}",
      `{data_dir: /data, keys: [{id: a, tenant: t, role: admin, key_hash: '${hashA}'}]}`,
      `{data_dir: /data, keys: [{id: a, tenant: t, role: admin, key_hash: '${hashB}'}]}`,
      provided("KEY"),
      provided("KEY_2"),
      provided("KEY", "models: [n]"),
      provided("KEY", "breaker: {failures: 1}"),
      routed("fallback: false"),
      routed("fallback: true"),
      routed("canary: {name: mock, model: c, percent: 1}"),
      routed("canary: {name: mock, model: c, percent: 2}"),
      "{data_dir: /data, model_gateway: {tool_passthrough: client}}",
      "{data_dir: /data, usage: {requests_per_minute: 1}}",
      `{data_dir: /data, keys: [{id: a, tenant: t, role: admin, key_hash: '${hashA}'}], usage: {budgets: [{tenant: t, tokens_per_day: 1}]}}`,
      `{data_dir: /data, keys: [{id: a, tenant: t, role: admin, key_hash: '${hashA}'}], usage: {budgets: [{tenant: t, tokens_per_month: 1}]}}`,
      text(),
      text("TOKEN_2"),
      text("TOKEN", "b"),
    ];
    const digests = await Promise.all(texts.map((content) => digestOf(content)));
    expect(new Set(digests).size).to.equal(texts.length);
  });

  it("does not depend on the value of a secret", async () => {
    for (const content of [text(), witnessed("TOKEN"), told("TOKEN"), provided("KEY")]) {
      expect(await digestOf(content, { TOKEN: "Bearer two", KEY: "sk-two-two" })).to.equal(await digestOf(content));
    }
  });

  it("leaves out values whose origin nobody told", async () => {
    const loaded = await loadText("data_dir: /data\n");
    const withHeader = (value: string): GatewayConfig => ({ ...loaded, upstreams: [upstream({ "X-A": value })] });
    expect(configDigest(withHeader("one"))).to.equal(configDigest(withHeader("two")));
    expect(configDigest(withHeader("one"))).to.not.equal(configDigest({ ...loaded, upstreams: [upstream({})] }));
  });
});

function upstream(headers: Readonly<Record<string, string>>): UpstreamConfig {
  return {
    transport: "http",
    url: "https://a.example",
    headers,
    name: "a",
    toolPrefix: "",
    protocol: "auto",
    connection: "session",
    timeoutMs: 1,
    maxTimeoutMs: 1,
    startTimeoutMs: 1,
    maxConnections: 1,
    idleMs: 1000,
    capabilities: {},
    facts: {},
    trustAnnotations: false,
    definitions: { pin: true, newTools: "pin" },
    untrusted: [],
  };
}
