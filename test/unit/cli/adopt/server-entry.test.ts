import { expect } from "chai";
import type { JsonObject } from "../../../../core/action/json.ts";
import type { ClientName } from "../../../../core/cli/adopt/client-config.ts";
import { LeftReason } from "../../../../core/cli/adopt/reference.ts";
import { serverForm } from "../../../../core/cli/adopt/server-entry.ts";

const env = { GITHUB_TOKEN: "ghp-made-up", PROJECTS: "/srv/projects", EMPTY: "" };

function read(entry: JsonObject, client: ClientName = "claude"): ReturnType<typeof serverForm> {
  return serverForm({ name: "Tools", entry, isDisabled: false }, "tools", { client, env, folder: "/work/project" });
}

function leftBecause(entry: JsonObject, client: ClientName = "claude"): string {
  try {
    read(entry, client);
  } catch (cause) {
    if (cause instanceof LeftReason) return cause.message;
    throw cause;
  }
  return "nothing";
}

describe("serverForm(server, name, values)", () => {
  it("starts a program where its client would, with what is plain in the configuration and secrets beside it", () => {
    const { upstream, secrets } = read({
      command: "./bin/server",
      args: ["--root", "/srv"],
      env: { API_KEY: "made-up", LOG_LEVEL: "debug", DATA: "/srv/data", NAME: "a text with a secret in it" },
    });
    expect(upstream).to.deep.equal({
      name: "tools",
      transport: "stdio",
      command: "/work/project/bin/server",
      args: ["--root", "/srv"],
      cwd: "/work/project",
      env: { LOG_LEVEL: "debug", DATA: "/srv/data" },
      env_from: ["API_KEY", "NAME"],
      start_timeout_ms: 60_000,
    });
    expect([...secrets]).to.deep.equal([
      ["API_KEY", "made-up"],
      ["NAME", "a text with a secret in it"],
    ]);
  });

  it("treats every header as a secret", () => {
    const { upstream, secrets } = read({
      type: "http",
      url: "https://a.example/mcp",
      headers: { Authorization: "Bearer x" },
    });
    expect(upstream.headers_env).to.deep.equal({ Authorization: "MCP_TOOLS_AUTHORIZATION" });
    expect([...secrets]).to.deep.equal([["MCP_TOOLS_AUTHORIZATION", "Bearer x"]]);
    expect(JSON.stringify(upstream)).to.not.include("Bearer");
  });

  it("reads the words of each client", () => {
    expect(
      read(
        { type: "local", command: ["npx", "-y", "a"], environment: { A_KEY: "{env:GITHUB_TOKEN}" } },
        "opencode",
      ).secrets.get("A_KEY"),
    ).to.equal("ghp-made-up");
    expect(
      read({ command: "a", args: [`\${workspaceFolder}/x`, `\${env:PROJECTS}`] }, "vscode").upstream.args,
    ).to.deep.equal(["/work/project/x", "/srv/projects"]);
    expect(read({ command: "a", env: { T_KEY: `\${env:GITHUB_TOKEN}` } }, "cursor").secrets.get("T_KEY")).to.equal(
      "ghp-made-up",
    );
    expect(read({ command: "a", args: [`\${NONE:-x}`] }).upstream.args).to.deep.equal(["x"]);
    const codex = read(
      { url: "https://a.example/mcp", bearer_token_env_var: "GITHUB_TOKEN", env_http_headers: { "X-B": "PROJECTS" } },
      "codex",
    );
    expect([...codex.secrets.values()]).to.deep.equal(["/srv/projects", "Bearer ghp-made-up"]);
    expect(read({ command: "a", args: [`\${HOME}`] }, "codex").upstream.args).to.deep.equal([`\${HOME}`]);
    expect(read({ type: "sse", url: "https://a.example/sse" }).upstream.transport).to.equal("sse");
  });

  // What is dropped could be a restriction, or a secret in a place that others see.
  for (const [client, entry, reason] of [
    ["codex", { command: "a", disabled_tools: ["drop"] }, "nothing that corresponds to its `disabled_tools`"],
    ["cursor", { command: "a", envFile: ".env" }, "nothing that corresponds to its `envFile`"],
    ["opencode", { url: "https://a.example", oauth: { clientId: "a" } }, "nothing that corresponds to its `oauth`"],
    ["vscode", { command: "a", env: { KEY: `\${input:key}` } }, `only the client can fill in \`\${input:key}\``],
    ["opencode", { command: ["a", "{file:./secret}"] }, "only the client can fill in `{file:./secret}`"],
    ["claude", { command: "a", env: { KEY: `\${MISSING}` } }, "the variable `MISSING`, which is not set here"],
    [
      "claude",
      { command: "a", args: ["--token", `\${GITHUB_TOKEN}`] },
      "an argument takes the variable `GITHUB_TOKEN`",
    ],
    ["claude", { type: "http", url: `https://a.example/\${GITHUB_TOKEN}` }, "its address takes the variable"],
    ["claude", { command: "a", env: { lower_key: "x" } }, "its variable `lower_key` may be a secret"],
    ["claude", { command: "a", env: { GATEWAY_API_KEY: "x" } }, "its variable `GATEWAY_API_KEY` may be a secret"],
    [
      "claude",
      { command: "a", env: { NODE_EXTRA_PASSWORD: "x" } },
      "its variable `NODE_EXTRA_PASSWORD` may be a secret",
    ],
    ["claude", { command: "a", env: { API_KEY: "" } }, "its variable `API_KEY` may be a secret"],
    ["claude", { command: "a", env: { "A=B": "x" } }, "the name of one of its variables is none"],
    ["claude", { command: "a", env: { A: {} } }, "its variable `A` is no text"],
    ["claude", { command: 7 }, "its command is no list of texts"],
    ["claude", { args: ["a"] }, "neither a `command` nor a `url`"],
    ["claude", { command: "a", args: "b" }, "its `args` are no list"],
    ["claude", { command: "a", args: ["x".repeat(200_000)] }, "a text of it is longer than"],
  ] as const satisfies readonly (readonly [ClientName, JsonObject, string])[]) {
    it(`leaves ${client} ${JSON.stringify(entry).slice(0, 70)}`, () => {
      expect(leftBecause(entry, client)).to.include(reason);
    });
  }

  it("never puts a variable that steers the gateway into its environment", () => {
    const { upstream, secrets } = read({
      command: "a",
      env: { NODE_OPTIONS: "--require /x.js", PATH: "/usr/bin", HTTPS_PROXY: "http://p:1" },
    });
    expect(upstream.env).to.deep.equal({
      NODE_OPTIONS: "--require /x.js",
      PATH: "/usr/bin",
      HTTPS_PROXY: "http://p:1",
    });
    expect(secrets.size).to.equal(0);
  });

  it("says where a secret stays in an argument or an address", () => {
    expect(read({ command: "a", args: ["--access-token", "x"] }).notes).to.have.length(1);
    expect(read({ url: "https://a.example/mcp?key=x" }).notes).to.have.length(1);
    expect(read({ command: "a", args: ["--verbose"] }).notes).to.deep.equal([]);
  });
});
