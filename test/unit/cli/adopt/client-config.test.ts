import { expect } from "chai";
import {
  type ClientName,
  clientFormats,
  clientNames,
  clientOf,
  parseClientConfig,
  projectOf,
} from "../../../../core/cli/adopt/client-config.ts";
import type { ClientFile } from "../../../../core/cli/adopt/client-file.ts";

function fileOf(path: string, text: string): ClientFile {
  return { path, text, bytes: Buffer.from(text), mode: 0o644 };
}

const url = "http://127.0.0.1:8080/mcp";

interface Sample {
  readonly path: string;
  readonly text: string;
  /** With `files` and `remote` behind the gateway. */
  readonly after: string;
}

/** As each client's documentation writes them: a program, an address, and a server that is switched off. */
const samples: Readonly<Record<ClientName, Sample>> = {
  claude: {
    path: "/work/project/.mcp.json",
    text: `{
  "mcpServers": {
    "files": { "type": "stdio", "command": "npx", "args": ["-y", "server-files"], "env": { "TOKEN": "t" } },
    "off": { "command": "npx", "disabled": true },
    "remote": { "type": "http", "url": "https://tools.example/mcp" }
  }
}
`,
    after: `{
  "mcpServers": {
    "gateway": {
      "type": "http",
      "url": "${url}",
      "headers": {
        "X-API-Key": "\${GATEWAY_AGENT_KEY}"
      }
    },
    "off": { "command": "npx", "disabled": true }
  }
}
`,
  },
  cursor: {
    path: "/work/project/.cursor/mcp.json",
    text: '{"mcpServers":{"files":{"command":"npx"},"remote":{"url":"https://tools.example/mcp"},"off":{"command":"a","disabled":true}}}',
    after: `{"mcpServers":{"gateway": {"url":"${url}","headers":{"X-API-Key":"\${env:GATEWAY_AGENT_KEY}"}},"off":{"command":"a","disabled":true}}}`,
  },
  vscode: {
    path: "/work/project/.vscode/mcp.json",
    text: `{
\t// asked once
\t"inputs": [{ "type": "promptString", "id": "key", "password": true }],
\t"servers": {
\t\t"off": { "command": "a", "disabled": true },
\t\t"files": { "type": "stdio", "command": "npx" }, // ours
\t\t"remote": { "type": "http", "url": "https://tools.example/mcp" },
\t},
}
`,
    after: `{
\t// asked once
\t"inputs": [{ "type": "promptString", "id": "key", "password": true }],
\t"servers": {
\t\t"off": { "command": "a", "disabled": true },
\t\t"gateway": {
\t\t\t"type": "http",
\t\t\t"url": "${url}",
\t\t\t"headers": {
\t\t\t\t"X-API-Key": "\${env:GATEWAY_AGENT_KEY}"
\t\t\t}
\t\t}, // ours
\t},
}
`,
  },
  codex: {
    path: "/home/me/.codex/config.toml",
    text: `model = "gpt" # ours
notes = """
[mcp_servers.fake]
"""

# files
[mcp_servers.files]
command = "npx"
args = [
  "-y", # quiet
  "[server]",
]

[mcp_servers.files.env]
TOKEN = "t"

# the last one
[mcp_servers."remote"]
url = "https://tools.example/mcp"

# switched off
[mcp_servers.off]
command = "a"
enabled = false

[profiles.fast]
model = "small"
`,
    after: `model = "gpt" # ours
notes = """
[mcp_servers.fake]
"""

# files
[mcp_servers.gateway]
url = "${url}"
bearer_token_env_var = "GATEWAY_AGENT_KEY"


# the last one

# switched off
[mcp_servers.off]
command = "a"
enabled = false

[profiles.fast]
model = "small"
`,
  },
  opencode: {
    path: "/work/project/opencode.jsonc",
    text: `{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "remote": { "type": "remote", "url": "https://tools.example/mcp", "enabled": true },
    /* off */
    "off": { "type": "local", "command": ["a"], "enabled": false },
    "files": {
      "type": "local",
      "command": ["npx", "-y", "server-files"]
    }
  }
}`,
    after: `{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "gateway": {
      "type": "remote",
      "url": "${url}",
      "headers": {
        "X-API-Key": "{env:GATEWAY_AGENT_KEY}"
      },
      "oauth": false
    },
    /* off */
    "off": { "type": "local", "command": ["a"], "enabled": false }
  }
}`,
  },
};

function rewritten(client: ClientName, text: string, ...names: readonly string[]): string {
  const config = parseClientConfig(fileOf(samples[client].path, text), client);
  return config.replace(new Set(names), "gateway", clientFormats[client].entry(url));
}

describe("the configurations of clients", () => {
  for (const client of clientNames) {
    const { path, text, after } = samples[client];

    it(`of ${clientFormats[client].title} are known by their path and read`, () => {
      expect(clientOf(path)).to.equal(client);
      const { servers } = parseClientConfig(fileOf(path, text), client);
      const found = servers.map(({ name, isDisabled }) => [name, isDisabled]).toSorted();
      expect(found).to.deep.equal([
        ["files", false],
        ["off", true],
        ["remote", false],
      ]);
    });

    it(`of ${clientFormats[client].title} are rewritten, and every other character stays`, () => {
      expect(rewritten(client, text, "files", "remote")).to.equal(after);
    });

    it(`of ${clientFormats[client].title} hold no key of the gateway`, () => {
      expect(after).to.include("GATEWAY_AGENT_KEY").and.not.include("agw_");
    });
  }

  it("of Codex keep CRLF, arrays of tables and quoted names", () => {
    const text = '[[rules]]\r\na = 1\r\n[mcp_servers."my server"]\r\ncommand = "a"\r\n[[rules]]\r\na = 2\r\n';
    expect(rewritten("codex", text, "my server")).to.equal(
      `[[rules]]\r\na = 1\r\n[mcp_servers.gateway]\r\nurl = "${url}"\r\nbearer_token_env_var = "GATEWAY_AGENT_KEY"\r\n[[rules]]\r\na = 2\r\n`,
    );
  });

  for (const text of [
    'mcp_servers = { files = { command = "npx" } }\n',
    '[mcp_servers]\nfiles = { command = "npx" }\n',
    'mcp_servers.files.command = "npx"\n',
    '[mcp_servers.files]\ncommand = "npx"\n[mcp_servers]\nother = { command = "b" }\n',
  ]) {
    it(`of Codex are refused where a table cannot be replaced alone: ${JSON.stringify(text.slice(0, 40))}`, () => {
      const names = text.includes("other") ? ["files", "other"] : ["files"];
      expect(() => rewritten("codex", text, ...names)).to.throw(/expected (?:each server as a table|TOML)/);
    });
  }

  for (const [text, message] of [
    ["{}", "expected MCP servers in `mcpServers`"],
    ["[]", "expected MCP servers in `mcpServers`"],
    ['{ "mcpServers": [] }', "expected `mcpServers` to be an object"],
    ['{ "mcpServers": { "a": "npx" } }', "expected the server `a` to be described by members"],
    ['{ "mcpServers": { "": { "command": "a" } } }', "expected names of 1 to 128 characters"],
    [`{ "mcpServers": { "${"a".repeat(200)}": {} } }`, "expected names of 1 to 128 characters"],
    [
      `{ "mcpServers": { ${Array.from({ length: 65 }, (_, at) => `"s${at}": {}`).join(",")} } }`,
      "at most 64 servers, got 65",
    ],
  ] as const) {
    it(`refuses ${JSON.stringify(text.slice(0, 40))}`, () => {
      expect(() => parseClientConfig(fileOf("/a/.mcp.json", text), "claude")).to.throw(message);
    });
  }

  it("belong to the folder of their project", () => {
    expect(projectOf(fileOf("/work/project/.vscode/mcp.json", ""))).to.equal("/work/project");
    expect(projectOf(fileOf("/work/project/.mcp.json", ""))).to.equal("/work/project");
    expect(projectOf(fileOf("/.codex/config.toml", ""))).to.equal("/");
  });

  it("are not guessed at by a name that any file may have", () => {
    for (const path of ["/a/mcp.json", "/a/config.toml", "/a/settings.json"])
      expect(clientOf(path)).to.equal(undefined);
  });
});
