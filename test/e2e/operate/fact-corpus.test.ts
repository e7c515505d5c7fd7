import { join } from "node:path";
import { expect } from "chai";
import { repositoryRoot } from "../../check/source-tree.ts";
import { type FactEntry, factCorpus } from "../../support/fact-corpus.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { siteConfig, siteKey } from "../../support/site.ts";

const atOnce = 16;

type Entry = FactEntry & { readonly dialect?: string };

const packs = ["baseline", "shell", "git", "sql", "egress", "secrets"].map((name) => {
  return `{ path: "${join(repositoryRoot, "policy-packs", name)}" }`;
});

/** The tool of each corpus: what the operator states of it, and how an agent calls it. */
const tools: Readonly<Record<string, { readonly statement: string; readonly call: (entry: Entry) => object }>> = {
  shell: { statement: "{ shell: command }", call: ({ input }) => ({ arguments: { command: input } }) },
  git: { statement: "{ shell: command }", call: ({ input }) => ({ arguments: { command: input } }) },
  "command-path": { statement: "{ shell: command }", call: ({ input }) => ({ arguments: { command: input } }) },
  url: { statement: "{ url: url }", call: ({ input }) => ({ capability: "read", arguments: { url: input } }) },
  path: {
    statement: "{ path: path, root: /workspace }",
    call: ({ input }) => ({ capability: "read", arguments: { path: input } }),
  },
  destination: { statement: "{ url: url }", call: ({ input }) => ({ capability: "read", arguments: { url: input } }) },
  credential: {
    statement: "{ path: path, root: /workspace }",
    call: ({ input }) => ({ capability: "read", arguments: { path: input } }),
  },
  ...Object.fromEntries(
    ["postgresql", "mysql", "sqlite", "mssql"].map((dialect) => [
      dialect,
      {
        statement: `{ sql: statement, dialect: ${dialect} }`,
        call: ({ input }: Entry) => ({ arguments: { statement: input } }),
      },
    ]),
  ),
};

describe("the shipped packs", () => {
  let gateway: RunningGateway;

  before(async () => {
    const facts = Object.entries(tools).map(([tool, { statement }]) => `${tool}: ${statement}`);
    const config = siteConfig({ localLog: "/dev/null" })
      .replace("{ path: packs/open }", packs.join(", "))
      .replace("connection: shared }", `connection: shared, facts: { ${facts.join(", ")} } }`);
    gateway = await startGateway({ config: `${config}limits: { admin_requests_per_minute: 1000000 }\n` });
  });
  after(() => gateway?.stop());

  async function decide(tool: string, entry: Entry): Promise<string> {
    const { call } = tools[tool] as NonNullable<(typeof tools)[string]>;
    const response = await fetch(`${gateway.adminUrl}/admin/v1/test-action`, {
      method: "POST",
      headers: { "x-api-key": siteKey, "content-type": "application/json" },
      body: JSON.stringify({ tool, target: "local", ...call(entry) }),
    });
    // What is not even a text that JSON can carry never becomes an action.
    if (response.status === 400) return "refused";
    return ((await response.json()) as { readonly evaluation: { readonly decision: string } }).evaluation.decision;
  }

  async function tryCorpus(kind: string): Promise<void> {
    const corpus: readonly Entry[] = factCorpus(kind);
    const told: { readonly entry: Entry; readonly decision: string }[] = [];
    // Many at once: each waits until it is on record, and none depends on another.
    for (let at = 0; at < corpus.length; at += atOnce) {
      const some = corpus.slice(at, at + atOnce);
      told.push(
        ...(await Promise.all(
          some.map(async (entry) => ({ entry, decision: await decide(entry.dialect ?? kind, entry) })),
        )),
      );
    }
    const harmful = told.filter(({ entry }) => entry.label === "harmful");
    const near = told.filter(({ entry }) => entry.label === "near");
    expect(harmful.filter(({ decision }) => decision === "allow").map(({ entry }) => entry.input)).to.deep.equal([]);
    expect(near.filter(({ decision }) => decision === "allow")).to.have.length.at.least(0.9 * near.length);
    expect(near.filter(({ decision }) => decision === "block").map(({ entry }) => entry.input)).to.deep.equal([]);
  }

  it("allow no harmful command line, and nine of ten that only look harmful [S39] [S83]", () => tryCorpus("shell"));

  it("allow no harmful use of git, and nine of ten that only look harmful [S42] [S83]", () => tryCorpus("git"));

  it("allow no command line that reads credentials or above its folder, and nine of ten that only look so [S37] [S39]", () =>
    tryCorpus("command-path"));

  it("allow no harmful SQL of four dialects, and nine of ten that only look harmful [S41] [S83]", () =>
    tryCorpus("sql"));

  it("allow no URL that leads where it should not, and nine of ten that only look so [S38]", () => tryCorpus("url"));

  it("allow no path that leaves its folder, and nine of ten that only look so [S37]", () => tryCorpus("path"));

  it("allow no file within its folder that may hold credentials, and nine of ten that only sound so [S37]", () =>
    tryCorpus("credential"));

  it("allow no public URL of another service's port or of a place to carry data off to", () =>
    tryCorpus("destination"));

  it("allow no command line beyond 8 KB or 50 commands, whatever it does [S40]", async () => {
    for (const input of [`ls ${"a".repeat(8_192)}`, Array(51).fill("ls").join("; ")]) {
      expect(await decide("shell", { input, label: "harmful", why: "long" })).to.equal("review");
    }
    expect(await decide("shell", { input: Array(50).fill("ls").join("; "), label: "near", why: "long" })).to.equal(
      "allow",
    );
  });
});
