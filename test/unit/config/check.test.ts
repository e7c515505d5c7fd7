import { expect } from "chai";
import { capabilities } from "../../../core/action/capability.ts";
import { decisions } from "../../../core/action/decision.ts";
import { modes } from "../../../core/action/policy.ts";
import { roles } from "../../../core/action/role.ts";
import { faultsOf, loadText } from "./fixture.ts";

const stdio = "name: a, transport: stdio, command: run";
const http = "name: a, transport: http, url: https://a.example/mcp";
const key = `id: k, tenant: t, role: admin`;
const hash = `sha256:${"a".repeat(64)}`;

describe("checkDocument(node, schema, faults)", () => {
  describe("when a value has the wrong type or is out of bounds", () => {
    const table: [string, string][] = [
      ["[]", "1:1: expected a mapping, got a list"],
      ["listen:", "1:8: listen: expected a mapping, got nothing"],
      ["listen: 8080", "1:9: listen: expected a mapping, got the number `8080`"],
      ["listen: {gateway_port: '80'}", "1:24: listen.gateway_port: expected an integer from 0 to 65535, got `80`"],
      [
        "listen: {gateway_port: 1.5}",
        "1:24: listen.gateway_port: expected an integer from 0 to 65535, got the number `1.5`",
      ],
      [
        "listen: {gateway_port: -1}",
        "1:24: listen.gateway_port: expected an integer from 0 to 65535, got the number `-1`",
      ],
      ["listen: {gateway_port: .nan}", "1:24: expected a number that a double holds exactly, got one that it does not"],
      ["listen: {allowed_hosts: localhost}", "1:25: listen.allowed_hosts: expected a list, got `localhost`"],
      ["state: {enabled: yes}", "1:18: state.enabled: expected `true` or `false`, got `yes`"],
      ["state: {enabled: 1}", "1:18: state.enabled: expected `true` or `false`, got the number `1`"],
      [
        "data_dir: 5",
        "1:11: data_dir: expected 1 to 4096 characters without control characters, got the number `5` (quote it to make it a string)",
      ],
      ["data_dir: ''", "1:11: data_dir: expected 1 to 4096 characters without control characters, got ``"],
      [
        "limits: {drain_ms: 3600001}",
        "1:20: limits.drain_ms: expected an integer from 0 to 3600000, got the number `3600001`",
      ],
      [
        "limits: {json_depth: 9007199254740993}",
        "1:22: expected a number that a double holds exactly, got one that it does not",
      ],
      [
        "policy: {default_decision: deny}",
        "1:28: policy.default_decision: expected `allow`, `review` or `block`, got `deny`",
      ],
      [
        "policy: {default_decision: blok}",
        "1:28: policy.default_decision: expected `allow`, `review` or `block`, got `blok` (did you mean `block`?)",
      ],
      [
        "policy: {default_decision: true}",
        "1:28: policy.default_decision: expected `allow`, `review` or `block`, got the boolean `true`",
      ],
      ["policy: {packs: [{path: p, settings: [1]}]}", "1:38: policy.packs[0].settings: expected a mapping, got a list"],
      [
        "policy: {packs: [{path: p, settings: {a: .inf}}]}",
        "1:42: expected a number that a double holds exactly, got one that it does not",
      ],
      [
        "policy: {packs: [{path: p, settings: {a: [9007199254740993]}}]}",
        "1:43: expected a number that a double holds exactly, got one that it does not",
      ],
      [`policy: {packs: [{path: p, settings: {a: "\\ud800"}}]}`, "1:42: expected text, got a lone surrogate"],
      [
        `upstreams: [{${stdio}, capabilities: {x: reed}}]`,
        "1:73: upstreams[0].capabilities.x: expected `read`, `generate`, `network`, `write`, `execute`, `approve`, `deploy` or `delete`, got `reed` (did you mean `read`?)",
      ],
      [
        `upstreams: [{${stdio}, capabilities: {'a b': read}}]`,
        "1:70: upstreams[0].capabilities: expected a tool name, in which `*` stands for any characters as key, got `a b`",
      ],
      [
        "effects: {./run.sh: read}",
        "1:11: effects: expected a program, perhaps with up to 5 subcommands and then one flag: `mytool`, `kubectl get`, `kubectl get --raw` as key, got `./run.sh`",
      ],
      [
        "effects: {mytool: harmless}",
        "1:19: effects.mytool: expected one of `read`, `write`, `delete`, `execute`, `network`, `unknown`, or `{ effect, lowers }` of two of them, got `harmless`",
      ],
      [
        `upstreams: [{${stdio}, facts: {run: {shell: /a~2}}}]`,
        "1:76: upstreams[0].facts.run.shell: expected the name of an argument, or a JSON Pointer like `/steps/*/command`, got `/a~2`",
      ],
      [
        `upstreams: [{${stdio}, facts: {run: {url: []}}}]`,
        "1:74: upstreams[0].facts.run.url: expected the name of an argument, a JSON Pointer like `/steps/*/url`, or a list of 1 to 20 of them, got a list",
      ],
      [
        `upstreams: [{${stdio}, facts: {run: {sql: q, dialect: oracle}}}]`,
        "1:86: upstreams[0].facts.run.dialect: expected `postgresql`, `mysql`, `sqlite` or `mssql`, got `oracle`",
      ],
      [
        `upstreams: [{${stdio}, facts: {run: {path: p, root: work}}}]`,
        "1:84: upstreams[0].facts.run.root: expected an absolute path, got `work`",
      ],
      [
        `upstreams: [{${stdio}, facts: {run: {shell: c, command: c}}}]`,
        "1:79: upstreams[0].facts.run.command: unknown key, expected one of `shell`, `git`, `sql`, `dialect`, `url`, `path`, `root`, `address`",
      ],
    ];
    for (const [text, fault] of table) {
      it(`refuses ${text}`, async () => {
        expect(await faultsOf(text)).to.deep.equal([`gateway.yaml:${fault}`]);
      });
    }
  });

  describe("when a key is unknown", () => {
    it("names the one that was meant", async () => {
      expect(await faultsOf("listen: {gatway_port: 1}\nlimit: {}\n")).to.deep.equal([
        "gateway.yaml:1:10: listen.gatway_port: unknown key, did you mean `gateway_port`?",
        "gateway.yaml:2:1: limit: unknown key, did you mean `limits`?",
      ]);
    });

    it("names all there are where none is near", async () => {
      expect(await faultsOf("log: {colour: true}\n")).to.deep.equal([
        "gateway.yaml:1:7: log.colour: unknown key, expected one of `level`",
      ]);
    });

    it("takes no name of Object.prototype for known", async () => {
      expect(await faultsOf("log: {constructor: 1, toString: 1, __proto__: 1}\n")).to.have.length(3);
    });

    it("keeps terminal codes, line breaks and backticks out of the message", async () => {
      const [fault] = await faultsOf('"\\e[2Jx`\\n\\u202e": 1\n');
      expect(fault).to.match(/^gateway\.yaml:1:1: \\u\{1b\}\[2Jx\\u\{60\}\\u\{a\}\\u\{202e\}: unknown key/);
    });
  });

  describe("when a key is missing", () => {
    it("points at the mapping that lacks it", async () => {
      expect(await faultsOf(`keys:\n  - id: a\n    role: admin\n    key_hash: ${hash}\n`)).to.deep.equal([
        "gateway.yaml:2:5: keys[0].tenant: expected this key, got nothing",
      ]);
    });

    it("asks for those of its transport only", async () => {
      expect(await faultsOf("upstreams: [{name: a, transport: stdio}, {name: b, transport: sse}]")).to.deep.equal([
        "gateway.yaml:1:13: upstreams[0].command: expected this key, got nothing",
        "gateway.yaml:1:42: upstreams[1].url: expected this key, got nothing",
      ]);
    });
  });

  it("refuses the keys of another transport", async () => {
    expect(await faultsOf(`upstreams: [{${stdio}, url: https://a.example}]`)).to.deep.equal([
      "gateway.yaml:1:55: upstreams[0].url: expected this key only where `transport` is `http` or `sse`, got it with `stdio`",
    ]);
    expect(await faultsOf(`upstreams: [{${http}, args: [x]}]`)).to.deep.equal([
      "gateway.yaml:1:68: upstreams[0].args: expected this key only where `transport` is `stdio`, got it with `http`",
    ]);
  });

  it("judges an upstream of unknown transport by its transport alone", async () => {
    expect(await faultsOf("upstreams: [{name: a, transport: grpc, url: 'x'}]")).to.deep.equal([
      "gateway.yaml:1:34: upstreams[0].transport: expected `stdio`, `http` or `sse`, got `grpc`",
      "gateway.yaml:1:40: upstreams[0].url: expected this key only where `transport` is `http` or `sse`, got it with `grpc`",
    ]);
  });

  describe("when a list is empty that could be read as everyone", () => {
    const table: [string, string][] = [
      ["keys: []", "1:7: keys: expected at least one entry, got an empty list (leave the key out to have no keys)"],
      [
        "listen: {allowed_hosts: []}",
        "1:25: listen.allowed_hosts: expected at least one entry, got an empty list (leave the key out to allow loopback names only)",
      ],
      [
        "listen: {allowed_origins: []}",
        "1:27: listen.allowed_origins: expected at least one entry, got an empty list (leave the key out to allow loopback origins only)",
      ],
      [
        "policy: {packs: []}",
        "1:17: policy.packs: expected at least one entry, got an empty list (leave the key out to have no packs)",
      ],
    ];
    for (const [text, fault] of table) {
      it(`refuses ${text}`, async () => {
        expect(await faultsOf(text)).to.deep.equal([`gateway.yaml:${fault}`]);
      });
    }
  });

  describe("when a value that may be a secret stands in the wrong place", () => {
    const secret = "s3cr3t-value";
    const table: [string, string][] = [
      [
        `keys: [{${key}, key_hash: ${secret}}]`,
        "keys[0].key_hash: expected `sha256:` and 64 lower-case hex digits, as `gateway keys new` prints it, got a string of 12 characters",
      ],
      [
        `keys: [{${key}, key_env: ${secret}}]`,
        "keys[0].key_env: expected the name of an environment variable: `A-Z 0-9 _`, no digit first, got a string of 12 characters",
      ],
      [
        `upstreams: [{${http}, headers_env: {X-A: ${secret}}}]`,
        "upstreams[0].headers_env.X-A: expected the name of an environment variable: `A-Z 0-9 _`, no digit first, got a string of 12 characters",
      ],
      [
        `upstreams: [{name: a, transport: http, url: 'https://u:${secret}@a.example'}]`,
        "upstreams[0].url: expected an http: or https: URL without credentials or fragment, got a string of 32 characters",
      ],
      [
        `upstreams: [{${http}, headers: {X-A: "${secret}\\n"}}]`,
        "upstreams[0].headers.X-A: expected at most 4096 printable ASCII characters, got a string of 13 characters",
      ],
      [
        `upstreams: [{${stdio}, env: {A: 5}}]`,
        "upstreams[0].env.A: expected at most 131072 characters without NUL, got a number (quote it to make it a string)",
      ],
    ];
    for (const [text, fault] of table) {
      it(`tells nothing of it: ${text}`, async () => {
        const [line, ...others] = await faultsOf(text);
        expect(others).to.deep.equal([]);
        expect(line?.replace(/^gateway\.yaml:1:\d+: /, "")).to.equal(fault);
      });
    }
  });

  it("knows every word of the kernel's own lists", async () => {
    for (const decision of decisions) {
      const text = `policy: {default_decision: ${decision}, packs: [{path: p}]}`;
      expect((await loadText(text)).policy.defaultDecision).to.equal(decision);
    }
    for (const mode of modes) {
      expect((await loadText(`policy: {packs: [{path: p, mode: ${mode}}]}`)).policy.packs[0]?.mode).to.equal(mode);
    }
    for (const role of roles) {
      const config = await loadText(`keys: [{id: k, tenant: t, role: ${role}, key_hash: ${hash}}]`);
      expect(config.keys[0]?.role).to.equal(role);
    }
    const words = Object.fromEntries(capabilities.map((capability) => [`tool_${capability}`, capability]));
    const config = await loadText(`upstreams: [{${stdio}, capabilities: ${JSON.stringify(words)}}]`);
    expect(config.upstreams[0]?.capabilities).to.deep.equal(words);
  });
});
