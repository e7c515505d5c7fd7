import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect } from "chai";
import { repositoryRoot } from "../check/source-tree.ts";
import { freePorts } from "../support/free-port.ts";
import { isAsShown } from "../support/shown-output.ts";
import { type Block, markedBlocks } from "./block.ts";
import { testedPages } from "./page.ts";
import { Terminal } from "./terminal.ts";

const startMs = 480_000;
const commandMs = 120_000;
const ready = '"event":"ready"';

describe("the pages for newcomers, in a clean clone [S75]", function () {
  this.timeout(startMs + commandMs);
  let folder: string;
  let clone: string;
  let firstPort: number;
  const terminals: Terminal[] = [];
  /** The terminal that started the gateway which runs. */
  let serving: Terminal | undefined;
  let isLocal = false;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "readme-"));
    clone = join(folder, "clone");
    await promisify(execFile)("git", ["clone", "--quiet", repositoryRoot, clone]);
    [firstPort = 0] = await freePorts(3);
  });

  after(async () => {
    await Promise.all(terminals.map((terminal) => terminal.close()));
    await rm(folder, { recursive: true });
  });

  for (const page of testedPages) {
    describe(page, () => {
      let terminal: Terminal;

      // Whoever reads one page has typed nothing of another one: what a block uses, its own page defines.
      before(async () => {
        terminal = new Terminal(clone, cleanEnvironment());
        terminals.push(terminal);
        if (isLocal) await clearRisk(firstPort + 1, clone);
      });

      for (const block of markedBlocks(readFileSync(join(repositoryRoot, page), "utf8"))) {
        it(`${block.use}: ${block.text.trim().split("\n")[0]}`, async () => {
          const text = withPorts(block.text, firstPort);
          if (block.use === "run") expectShown(block, await terminal.run(text, commandMs));
          else if (block.use === "client") await expectTools(text, terminal);
          else {
            if (serving !== undefined) expect(await serving.interrupt(commandMs)).to.include("gateway_stopping");
            serving = terminal;
            isLocal = !text.includes("--config");
            await terminal.start(text, ready, startMs);
          }
        });
      }
    });
  }
});

/** The page says 8080 to 8082, as the defaults are. Here others may use them. */
function withPorts(text: string, firstPort: number): string {
  return text
    .replace(/\b808([012])\b/g, (_port, offset) => String(firstPort + Number(offset)))
    .replace(/^npm start$/m, `npm start -- --port ${firstPort}`);
}

/** Nothing that the run of this test set may reach the newcomer's shell; npm's remarks differ from machine to machine. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|GATEWAY_|NODE_OPTIONS$)/i.test(name));
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.endsWith("node_modules/.bin"));
  return { ...Object.fromEntries(kept), PATH: path.join(delimiter), npm_config_loglevel: "error" };
}

function expectShown({ shown }: Block, printed: string): void {
  if (shown !== null && !isAsShown(shown, printed)) expect(printed).to.equal(shown);
}

/** Takes back what the pages before this one made the agent look like, as half an hour would. */
async function clearRisk(adminPort: number, clone: string): Promise<void> {
  const sessions = `http://127.0.0.1:${adminPort}/admin/v1/sessions`;
  const headers = {
    "X-API-Key": (await readFile(join(clone, "data/operator.key"), "utf8")).trim(),
    "Content-Type": "application/json",
  };
  const { items } = (await (await fetch(sessions, { headers })).json()) as { items: readonly { session: string }[] };
  for (const { session } of items) {
    const body = JSON.stringify({ reason: "another page" });
    const { status } = await fetch(`${sessions}/${encodeURIComponent(session)}/reset`, {
      method: "POST",
      headers,
      body,
    });
    expect(status).to.equal(200);
  }
}

async function expectTools(clientConfig: string, terminal: Terminal): Promise<void> {
  const variable = /\$\{(\w+)\}/.exec(clientConfig)?.[1] ?? "";
  const key = await terminal.run(`printenv ${variable}`, commandMs);
  const { url, headers } = JSON.parse(clientConfig.replace(/\$\{\w+\}/, key.trim())).mcpServers.governed;
  const client = new Client({ name: "configured", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).to.include("read_note");
  await client.close();
}
