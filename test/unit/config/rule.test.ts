import { generateKeyPairSync } from "node:crypto";
import { expect } from "chai";
import { faultsOf, hashA, hashB } from "./fixture.ts";

const keyA = `{id: a, tenant: acme, role: admin, key_hash: '${hashA}'}`;
const public_ = "listen: {host: 0.0.0.0, allowed_hosts: [gateway.example]}";
const stdio = (name: string, more = ""): string => `{name: ${name}, transport: stdio, command: run${more}}`;
const http = (more: string): string => `{name: a, transport: http, url: 'https://a.example/mcp'${more}}`;

/** The faults without file and place. */
async function textsOf(text: string, env: NodeJS.ProcessEnv = {}): Promise<string[]> {
  return (await faultsOf(text, env)).map((fault) => fault.replace(/^gateway\.yaml:\d+:\d+: /, ""));
}

describe("checkRules(draft, secrets, faults)", () => {
  describe("when effects of programs are stated", () => {
    it("takes what is new, stricter, or says what it lowers", async () => {
      const text =
        "effects: {mytool: read, kubectl get: read, sort -o: delete, kubectl: {effect: execute, lowers: network}}";
      expect(await textsOf(text)).to.deep.equal([]);
    });

    it("refuses to lower a shipped effect that the file does not repeat", async () => {
      expect(await textsOf("effects: {kubectl: read, docker rm: {effect: read, lowers: write}}")).to.deep.equal([
        "effects.kubectl: expected `{ effect: read, lowers: network }`, because the shipped effect is stricter, got `read`",
        "effects.docker rm: expected `{ effect: read, lowers: delete }`, because the shipped effect is stricter, got `lowers: write`",
      ]);
      expect(await textsOf("effects: {kubectl get: {effect: read, lowers: network}}")).to.deep.equal([
        "effects.kubectl get: expected `read` alone, because it lowers no shipped effect, got `lowers: network`",
      ]);
    });

    it("refuses programs that run others, and those that code judges", async () => {
      expect(await textsOf("effects: {bash: read, git status: write}")).to.deep.equal([
        "effects.bash: expected a program that does not run another one: that one is judged, got `bash`",
        "effects.git status: expected another program: the words of this one are judged by the gateway's own code, got `git status`",
      ]);
    });

    it("names the line and column of the entry", async () => {
      expect(await faultsOf("effects:\n  mytool: read\n  kubectl: read\n")).to.deep.equal([
        "gateway.yaml:3:12: effects.kubectl: expected `{ effect: read, lowers: network }`, because the shipped effect is stricter, got `read`",
      ]);
    });
  });

  describe("when two ports are equal", () => {
    it("refuses them, defaults included", async () => {
      expect(await textsOf("listen: {admin_port: 8080, metrics_port: 8080}")).to.deep.equal([
        "listen.admin_port: expected a port of its own, got `8080` that `listen.gateway_port` has",
        "listen.metrics_port: expected a port of its own, got `8080` that `listen.gateway_port` has",
      ]);
    });

    it("takes port 0 three times", async () => {
      expect(await textsOf("listen: {gateway_port: 0, admin_port: 0, metrics_port: 0}")).to.deep.equal([]);
    });
  });

  describe("when the address is not a loopback one", () => {
    const because = "because `listen.host` is `0.0.0.0`, not a loopback address";

    it("refuses to start without keys", async () => {
      expect(await textsOf(public_)).to.deep.equal([`keys: expected at least one key, got none, ${because}`]);
    });

    it("refuses to start without authentication", async () => {
      const text = `${public_}\nkeys: [${keyA}]\nmcp_gateway: {require_auth: false, anonymous_tenant: t}`;
      expect(await textsOf(text)).to.deep.equal([
        `mcp_gateway.require_auth: expected \`true\`, got \`false\`, ${because}`,
      ]);
    });

    it("refuses to start without the names clients use", async () => {
      expect(await textsOf(`listen: {host: 0.0.0.0}\nkeys: [${keyA}]`)).to.deep.equal([
        `listen.allowed_hosts: expected the names clients use, got none, ${because}`,
      ]);
    });

    it("asks the same of the admin port's address", async () => {
      const said = "because `listen.admin_host` is `0.0.0.0`, not a loopback address";
      expect(await textsOf(`listen: {admin_host: 0.0.0.0}\nkeys: [${keyA}]`)).to.deep.equal([
        `listen.allowed_hosts: expected the names clients use, got none, ${said}`,
      ]);
    });

    it("starts with all three", async () => {
      expect(await textsOf(`${public_}\nkeys: [${keyA}]`)).to.deep.equal([]);
    });

    for (const host of ["'::'", "10.0.0.1", "gateway.example", "'127.1'", "localhost.example", "'::ffff:127.0.0.1'"]) {
      it(`counts ${host} as one that others may reach`, async () => {
        expect(await textsOf(`listen: {host: ${host}}`)).to.have.length(2);
      });
    }

    for (const host of ["127.0.0.1", "127.8.8.8", "localhost", "LOCALHOST", "'::1'"]) {
      it(`counts ${host} as loopback`, async () => {
        expect(await textsOf(`listen: {host: ${host}}`)).to.deep.equal([]);
      });
    }
  });

  describe("when keys are not told apart", () => {
    it("refuses two of one id", async () => {
      const text = `keys: [${keyA}, {id: a, tenant: acme, role: admin, key_hash: '${hashB}'}]`;
      expect(await textsOf(text)).to.deep.equal([
        "keys[1].id: expected an id of its own, got `a` that `keys[0].id` has",
      ]);
    });

    it("refuses one key in two tenants", async () => {
      const text = `keys: [${keyA}, {id: b, tenant: other, role: admin, key_hash: '${hashA}'}]`;
      expect(await textsOf(text)).to.deep.equal(["keys[1]: expected a key of its own, got a key that `keys[0]` has"]);
    });

    it("refuses one key by hash and by variable, or by two variables", async () => {
      const key = "v".repeat(40);
      const entry = (id: string): string => `{id: ${id}, tenant: t, role: admin, key_env: KEY_${id.toUpperCase()}}`;
      expect(await textsOf(`keys: [${entry("x")}, ${entry("y")}]`, { KEY_X: key, KEY_Y: key })).to.deep.equal([
        "keys[1]: expected a key of its own, got a key that `keys[0]` has",
      ]);
      expect(await textsOf(`keys: [${entry("x")}, ${entry("y")}]`, { KEY_X: key, KEY_Y: `${key}z` })).to.deep.equal([]);
    });

    it("keeps `anonymous` for the caller without a key", async () => {
      expect(await textsOf(`keys: [{id: anonymous, tenant: t, role: admin, key_hash: '${hashA}'}]`)).to.deep.equal([
        "keys[0].id: expected another id, got `anonymous`, the caller without a key",
      ]);
    });
  });

  it("asks for a tenant where keys are not required", async () => {
    expect(await textsOf("mcp_gateway: {require_auth: false}")).to.deep.equal([
      "mcp_gateway.anonymous_tenant: expected a tenant, got nothing, because `require_auth` is `false`",
    ]);
    expect(await textsOf("mcp_gateway: {require_auth: false, anonymous_tenant: guests}")).to.deep.equal([]);
  });

  for (const [section, key] of [
    ["sessions", "gateway_tenant"],
    ["resilience", "tenant"],
  ]) {
    it(`asks for a tenant with an admin in ${section}.${key}`, async () => {
      const operator = `{id: b, tenant: umbrella, role: operator, key_hash: '${hashB}'}`;
      const text = (tenant: string): string => `keys: [${keyA}, ${operator}]\n${section}: {${key}: ${tenant}}`;
      for (const tenant of ["umbrella", "acmee"]) {
        expect(await textsOf(text(tenant))).to.deep.equal([
          `${section}.${key}: expected a tenant that a key of role \`admin\` belongs to, got \`${tenant}\``,
        ]);
      }
      expect(await textsOf(text("acme"))).to.deep.equal([]);
    });
  }

  it("refuses backups of what is kept in memory alone", async () => {
    expect(await textsOf("{state: {enabled: false}, resilience: {enabled: true}}")).to.deep.equal([
      "resilience.enabled: expected `false`, got `true`, because `state.enabled` is `false`",
    ]);
    expect(await textsOf("resilience: {enabled: true}")).to.deep.equal([]);
  });

  it("names no trace in metrics where nothing is traced", async () => {
    expect(await textsOf("telemetry: {exemplars: true}")).to.deep.equal([
      "telemetry.exemplars: expected `false`, got `true`, because there is no `endpoint`: nothing is traced",
    ]);
    expect(await textsOf("telemetry: {exemplars: true, endpoint: 'http://127.0.0.1:4318'}")).to.deep.equal([]);
  });

  it("reports metrics once a second at most", async () => {
    expect(await textsOf("telemetry: {metrics_interval_ms: 999}")).to.deep.equal([
      "telemetry.metrics_interval_ms: expected 0, or 1000 to 3600000, got 999",
    ]);
    for (const fitting of [0, 1000]) {
      expect(await textsOf(`telemetry: {metrics_interval_ms: ${fitting}}`)).to.deep.equal([]);
    }
  });

  describe("when two witnesses share a name", () => {
    it("is a fault: the name says which of them was told what", async () => {
      const text =
        "evidence:\n  witnesses:\n    - {name: a, type: file, path: /p}\n    - {name: a, type: git, repository: /q}\n";
      expect(await textsOf(text)).to.deep.equal([
        "evidence.witnesses[1].name: expected a name of its own, got `a` that `evidence.witnesses[0].name` has",
      ]);
    });
  });

  describe("when everything would be allowed", () => {
    const fault =
      "policy.default_decision: expected `block` or `review`, got `allow`, because no pack is in mode `enforce`: everything would be allowed";

    it("refuses `allow` without packs", async () => {
      expect(await textsOf("policy: {default_decision: allow}")).to.deep.equal([fault]);
    });

    it("refuses `allow` with packs in shadow mode only", async () => {
      expect(await textsOf("policy: {default_decision: allow, packs: [{path: p, mode: shadow}]}")).to.deep.equal([
        fault,
      ]);
    });

    it("takes `allow` where a pack is enforced, and `review` without any", async () => {
      expect(await textsOf("policy: {default_decision: allow, packs: [{path: p}]}")).to.deep.equal([]);
      expect(await textsOf("policy: {default_decision: review}")).to.deep.equal([]);
    });
  });

  it("refuses one pack twice", async () => {
    expect(await textsOf("policy: {plugins: [{path: p}, {path: p}]}")).to.have.length(1);
    expect(await textsOf("policy: {packs: [{path: p}, {path: p}]}")).to.deep.equal([
      "policy.packs[1].path: expected a path of its own, got `p` that `policy.packs[0].path` has",
    ]);
  });

  it("refuses a statement about arguments that states nothing", async () => {
    const textsOfFacts = (facts: string) => textsOf(`upstreams: [${stdio("a", `, facts: ${facts}`)}]`);
    expect(await textsOfFacts("{run: {}, q: {dialect: mysql}, r: {url: u, root: /srv}}")).to.deep.equal([
      "upstreams[0].facts.run: expected at least one of `shell`, `git`, `sql`, `url`, `path`, `address`, got none",
      "upstreams[0].facts.q: expected at least one of `shell`, `git`, `sql`, `url`, `path`, `address`, got none",
      "upstreams[0].facts.q.dialect: expected this key only beside `sql`, got it without",
      "upstreams[0].facts.r.root: expected this key only beside `path`, got it without",
    ]);
    expect(
      await textsOfFacts("{run: {shell: c}, q: {sql: s, dialect: mysql}, r: {path: p, root: /srv}}"),
    ).to.deep.equal([]);
  });

  it("refuses times in the wrong order", async () => {
    expect(await textsOf("limits: {headers_ms: 31000}")).to.deep.equal([
      "limits.body_ms: expected at least `limits.headers_ms` (31000), got 25000",
    ]);
    expect(await textsOf(`upstreams: [${stdio("a", ", timeout_ms: 900001")}]`)).to.deep.equal([
      "upstreams[0].max_timeout_ms: expected at least `timeout_ms` (900001), got 900000",
    ]);
  });

  describe("when a plugin taints", () => {
    const plugin = (more: string): string => `policy: {plugins: [{path: p, ${more}}]}`;

    it("refuses more than eight words, and a plugin that is asked about names alone", async () => {
      expect(await textsOf(plugin("taints: [a, b, c, d, e, f, g, h, i]"))).to.deep.equal([
        "policy.plugins[0].taints: expected at most 8 taints, got 9",
      ]);
      expect(await textsOf(plugin("phases: [list], taints: [a]"))).to.deep.equal([
        "policy.plugins[0].taints: expected `input` or `output` among `phases`: the name of a tool adds no taints",
      ]);
    });

    it("takes eight, and any phase where it does not taint", async () => {
      expect(await textsOf(plugin("taints: [a, b, c, d, e, f, g, h]"))).to.deep.equal([]);
      expect(await textsOf(plugin("phases: [list, output], taints: [a]"))).to.deep.equal([]);
      expect(await textsOf(plugin("phases: [list]"))).to.deep.equal([]);
    });
  });

  describe("when upstreams are not told apart", () => {
    it("refuses two of one name", async () => {
      expect(await textsOf(`upstreams: [${stdio("a")}, ${stdio("b")}, ${stdio("a")}]`)).to.deep.equal([
        "upstreams[2].name: expected a name of its own, got `a` that `upstreams[0].name` has",
      ]);
    });

    it("refuses two of one prefix, and takes two without", async () => {
      const prefix = ", tool_prefix: x_";
      expect(await textsOf(`upstreams: [${stdio("a", prefix)}, ${stdio("b", prefix)}]`)).to.deep.equal([
        "upstreams[1].tool_prefix: expected a prefix of its own, got `x_` that `upstreams[0].tool_prefix` has",
      ]);
      expect(await textsOf(`upstreams: [${stdio("a")}, ${stdio("b")}]`)).to.deep.equal([]);
    });
  });

  describe("when an upstream's values are not its own", () => {
    it("refuses a variable given twice", async () => {
      expect(
        await textsOf(`upstreams: [${stdio("a", ", env: {HOME: x}, env_from: [HOME]")}]`, { HOME: "/" }),
      ).to.deep.equal([
        "upstreams[0].env_from[0]: expected each variable once, got `HOME` that `upstreams[0].env.HOME` has",
      ]);
    });

    it("refuses a header given twice in whatever case", async () => {
      const text = `upstreams: [${http(", headers: {X-Team: a}, headers_env: {x-team: TEAM}")}]`;
      expect(await textsOf(text, { TEAM: "b" })).to.deep.equal([
        "upstreams[0].headers_env.x-team: expected each header once, got `x-team` that `upstreams[0].headers.X-Team` has",
      ]);
    });

    it("refuses the headers of the conversation itself", async () => {
      expect(await textsOf(`upstreams: [${http(", headers: {Host: evil.example, Mcp-Session-Id: x}")}]`)).to.deep.equal(
        [
          "upstreams[0].headers.Host: expected a header of the operator's, got `Host`, which the gateway sets",
          "upstreams[0].headers.Mcp-Session-Id: expected a header of the operator's, got `Mcp-Session-Id`, which the gateway sets",
        ],
      );
    });
  });

  describe("when a secret stands in the file itself", () => {
    for (const header of ["Authorization", "cookie", "X-API-Key", "X-Auth-Token"]) {
      it(`refuses the header ${header}`, async () => {
        expect(await textsOf(`upstreams: [${http(`, headers: {${header}: s3cr3t}`)}]`)).to.deep.equal([
          `upstreams[0].headers.${header}: expected a secret to come by \`headers_env\`, got its value`,
        ]);
      });
    }

    for (const variable of ["GITHUB_TOKEN", "PASSWORD", "OPENAI_API_KEY", "db_password"]) {
      it(`refuses the variable ${variable}`, async () => {
        expect(await textsOf(`upstreams: [${stdio("a", `, env: {${variable}: s3cr3t}`)}]`)).to.deep.equal([
          `upstreams[0].env.${variable}: expected a secret to come by \`env_from\`, got its value`,
        ]);
      });
    }

    it("takes names that only sound like it", async () => {
      const text = `upstreams: [${stdio("a", ", env: {TOKEN_FILE: /run/token, TOKENIZERS_PARALLELISM: 'false'}")}]`;
      expect(await textsOf(text)).to.deep.equal([]);
    });
  });

  describe("when signers of references are named", () => {
    const spki = (type: "ed25519" | "ec"): string => {
      const { publicKey } =
        type === "ec" ? generateKeyPairSync("ec", { namedCurve: "P-256" }) : generateKeyPairSync(type);
      return publicKey.export({ format: "der", type: "spki" }).toString("base64");
    };
    const signers = (...entries: readonly string[]): string => `sessions: {task_signers: [${entries.join(", ")}]}`;
    const signer = (id: string, tenant: string, key = spki("ed25519")): string =>
      `{id: ${id}, tenant: ${tenant}, public_key: "${key}"}`;

    it("takes Ed25519 keys, eight for a tenant", async () => {
      const eight = ["acme", "other"].flatMap((tenant) =>
        Array.from({ length: 8 }, (_, at) => signer(`${tenant}${at}`, tenant)),
      );
      expect(await textsOf(signers(...eight))).to.deep.equal([]);
      expect(await textsOf(signers(...eight, signer("more", "acme")))).to.deep.equal([
        "sessions.task_signers[16].tenant: expected at most 8 signers of a tenant, got more",
      ]);
    });

    it("refuses another kind of key, and two of one id", async () => {
      expect(await textsOf(signers(signer("a", "acme", spki("ec")), signer("b", "acme", "AAAA")))).to.deep.equal(
        [0, 1].map(
          (at) => `sessions.task_signers[${at}].public_key: expected an Ed25519 public key, got something else`,
        ),
      );
      expect(await textsOf(signers(signer("a", "acme"), signer("a", "acme")))).to.deep.equal([
        "sessions.task_signers[1].id: expected an id of its own, got `a` that `sessions.task_signers[0].id` has",
      ]);
    });
  });
});
