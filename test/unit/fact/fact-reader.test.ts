import { expect } from "chai";
import {
  type ActionEffect,
  type ActionFacts,
  capabilityEffect,
  type FactStatement,
  type GitFact,
} from "../../../core/action/action-fact.ts";
import type { Capability } from "../../../core/action/capability.ts";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import { GlobTable } from "../../../core/action/glob.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import { FactReader } from "../../../core/fact/fact-reader.ts";
import type { ParserLoaders, ReadCommand } from "../../../core/fact/parser.ts";
import { shippedParsers } from "../../../core/fact/shipped-parser.ts";
import { newAction } from "../../support/ledger-world.ts";

const effects: Readonly<Record<string, ActionEffect>> = { ls: "read", rm: "delete", curl: "network", git: "read" };

/** A command line of one program: as much of a shell as the reader needs to see. */
function readLine(line: string | readonly string[]): ReadCommand {
  const argv = typeof line === "string" ? line.split(" ") : line;
  const name = argv[0] ?? "";
  if (name === "crash") throw new Error("crash");
  const effect = effects[name] ?? "unknown";
  const isPush = name === "git" && argv.includes("push");
  const run: GitFact = {
    subcommand: argv[1] ?? null,
    options: [],
    remotes: [],
    refs: [],
    force: false,
    config_overrides: [],
    effect: isPush ? "network" : "read",
  };
  const command = {
    name,
    argv,
    wrappers: [],
    env: [],
    effect,
    redirects: [],
    hosts: [],
    paths: [],
    place: "top" as const,
  };
  return {
    shell: { parsed: true, dynamic: false, more: false, effect: isPush ? "network" : effect, commands: [command] },
    git: name === "git" ? [run] : [],
    places: { hosts: name === "curl" ? ["bare.example"] : [], paths: [], more: false },
  };
}

const loads: string[] = [];
const parsers: ParserLoaders = {
  shell: async () => {
    loads.push("shell");
    return readLine;
  },
  sql: async () => (text, dialect) => ({
    parsed: dialect !== null,
    dialect,
    effect: dialect === null ? "unknown" : text.startsWith("select") ? "read" : "write",
    statements: [],
    more: false,
  }),
  url: async () => (text) => ({
    scheme: "https",
    host: text.replace("https://", ""),
    zone: "name",
    port: 443,
    userinfo: false,
    odd: false,
  }),
  path: async () => (text, root) => ({ plain: `${root ?? ""}/${text}`, inside: root !== undefined, odd: false }),
  address: async () => (text) => ({ kind: "mail", plain: text.toLowerCase(), odd: false }),
};

async function factsOf(
  statement: FactStatement | undefined,
  args: JsonObject,
  changed: Partial<ActionEnvelope> = {},
  kinds: ParserLoaders = parsers,
): Promise<ActionFacts | undefined> {
  const tools: Record<string, FactStatement> = statement === undefined ? {} : { "ru*": statement };
  const reader = new FactReader({ statements: new Map([["files", new GlobTable(tools)]]), parsers: kinds });
  const action = newAction({ target: "files", tool: "run", arguments: args, ...changed });
  return (await reader.describe(action)).facts;
}

async function effectOf(...given: Parameters<typeof factsOf>): Promise<ActionEffect | undefined> {
  return (await factsOf(...given))?.effect;
}

describe("FactReader", () => {
  describe("without a statement", () => {
    it("finds hosts and paths, and takes the effect of the capability", async () => {
      const args = { url: "https://a.example/x", file: "/etc/hosts" };
      for (const capability of ["read", "write", "generate", "deploy"] satisfies Capability[])
        expect(await factsOf(undefined, args, { capability })).to.deep.equal({
          hosts: ["a.example"],
          paths: ["/etc/hosts"],
          more: false,
          effect: capabilityEffect[capability],
        });
    });

    it("answers at once, and loads no parser", () => {
      loads.length = 0;
      const { facts } = new FactReader({ parsers }).describe(newAction()) as ActionEnvelope;
      expect(facts?.paths).to.deep.equal(["/srv/notes/today.md"]);
      expect(loads).to.deep.equal([]);
    });

    it("gives model requests and tools that are listed no facts", async () => {
      expect(await factsOf(undefined, {}, { protocol: "model" })).to.equal(undefined);
      expect(await factsOf({ shell: "command" }, { command: "ls" }, { phase: "list" })).to.equal(undefined);
    });
  });

  describe("with a statement", () => {
    it("takes the effect of what the arguments say, whatever the capability", async () => {
      for (const [command, effect] of [
        ["ls", "read"],
        ["rm x", "delete"],
        ["other", "unknown"],
        [["rm", "x"], "delete"],
      ] as const)
        expect(await effectOf({ shell: "command" }, { command }, { capability: "read" }), String(command)).to.equal(
          effect,
        );
      const sql = { sql: "statement", dialect: "sqlite" } as const;
      expect(await effectOf(sql, { statement: "select 1" }, { capability: "delete" })).to.equal("read");
      expect(await effectOf({ sql: "statement" }, { statement: "select 1" })).to.equal("unknown");
    });

    it("takes the strictest of several kinds", async () => {
      const statement = { shell: "command", sql: "statement", dialect: "sqlite" } as const;
      expect(await effectOf(statement, { command: "ls", statement: "insert" })).to.equal("write");
      expect(await effectOf(statement, { command: "rm", statement: "insert" })).to.equal("delete");
    });

    it("counts by the longest name or glob of the tool, at its own upstream only", async () => {
      const statements = new Map([
        ["files", new GlobTable({ "*": { shell: "a" }, "run*": { shell: "b" }, "r*": { shell: "c" } })],
      ]);
      const reader = new FactReader({ statements, parsers });
      const action = newAction({ target: "files", tool: "runs", arguments: { a: "rm", b: "ls", c: "rm" } });
      expect((await reader.describe(action)).facts?.effect).to.equal("read");
      const { facts } = await reader.describe({ ...action, target: "other" });
      expect(facts).to.not.have.property("shell");
    });

    it("loads a parser once, and answers at once from then on", async () => {
      loads.length = 0;
      const reader = new FactReader({
        statements: new Map([["files", new GlobTable<FactStatement>({ run: { shell: "command" } })]]),
        parsers,
      });
      const action = newAction({ target: "files", tool: "run", arguments: { command: "ls" } });
      const first = reader.describe(action);
      expect(first).to.be.instanceOf(Promise);
      await first;
      expect((reader.describe(action) as ActionEnvelope).facts?.shell?.effect).to.equal("read");
      expect(loads).to.deep.equal(["shell"]);
    });

    it("follows a pointer, and `*` to every item of a list", async () => {
      const args = { steps: [{ run: "ls" }, { run: "rm x" }], mail: { to: ["A@x.example", "b@x.example"] } };
      const facts = await factsOf({ shell: "/steps/*/run", address: ["/mail/to", "cc"] }, args);
      expect(facts?.shell?.commands.map(({ name }) => name)).to.deep.equal(["ls", "rm"]);
      expect(facts?.effect).to.equal("delete");
      expect(facts?.address?.map(({ plain }) => plain)).to.deep.equal(["a@x.example", "b@x.example"]);
    });

    it("adds the places that the kinds find, each once", async () => {
      const args = { command: "curl bare.example", url: "https://a.example:8443/x", path: "notes" };
      const facts = await factsOf({ shell: "command", url: ["url"], path: ["path"], root: "/srv" }, args);
      expect(facts).to.deep.include({ hosts: ["a.example:8443", "bare.example", "a.example:8443/x"], more: false });
      expect(facts?.paths).to.deep.equal(["/srv/notes"]);
      expect(facts?.path).to.deep.equal([{ plain: "/srv/notes", inside: true, odd: false }]);
    });

    it("holds at most 20 places, and says so", async () => {
      const facts = await factsOf(
        { path: ["paths"], root: "/srv" },
        { paths: Array.from({ length: 20 }, (_, n) => `n${n}`), at: "/x" },
      );
      expect(facts?.paths).to.have.length(20);
      expect(facts?.more).to.equal(true);
    });

    it("leaves the effect to the capability where no kind has one", async () => {
      for (const capability of ["read", "write"] satisfies Capability[])
        expect(await effectOf({ url: ["url"] }, { url: "https://a.example" }, { capability })).to.equal(capability);
    });
  });

  describe("fails closed", () => {
    const all: readonly (readonly [FactStatement, JsonObject])[] = [
      [{ shell: "a" }, { a: "ls" }],
      [{ git: "a" }, { a: "status" }],
      [{ sql: "a", dialect: "sqlite" }, { a: "select 1" }],
      [{ url: ["a"] }, { a: "https://a.example" }],
      [{ path: ["a"], root: "/srv" }, { a: "notes" }],
      [{ address: ["a"] }, { a: "a@x.example" }],
    ];

    it("to `unknown` where an argument is missing, has another type, is too long or one of too many", async () => {
      for (const [statement, args] of all) {
        const [kind = ""] = Object.keys(statement);
        const read: Partial<ActionEnvelope> = { capability: "read" };
        expect(await effectOf(statement, args, read), kind).to.equal("read");
        for (const a of [null, [], 7, { a: "ls" }, ["ls", 7], "l".repeat(16_385)])
          expect(await effectOf(statement, { a }, read), `${kind} of ${JSON.stringify(a).slice(0, 32)}`).to.equal(
            "unknown",
          );
        const facts = await factsOf(statement, {}, read);
        expect(facts?.effect, kind).to.equal("unknown");
        expect(facts, kind).to.have.property(kind);
      }
      const many = { urls: Array.from({ length: 21 }, (_, n) => `https://${n}.example`) };
      expect(await effectOf({ url: ["urls"] }, many, { capability: "read" })).to.equal("unknown");
      expect(await effectOf({ shell: "/urls/*" }, many, { capability: "read" })).to.equal("unknown");
    });

    it("to `unknown` where a parser is missing, cannot be loaded or fails", async () => {
      const broken = async (): Promise<never> => {
        throw new Error("lost");
      };
      const failing = async () => () => {
        throw new Error("crash");
      };
      const reads: Partial<ActionEnvelope> = { capability: "read" };
      for (const kinds of [
        {},
        { shell: broken, sql: broken, url: broken, path: broken, address: broken },
        { shell: failing, sql: failing, url: failing, path: failing, address: failing },
      ])
        for (const [statement, args] of all) {
          expect(await effectOf(statement, args, reads, kinds), Object.keys(statement)[0]).to.equal("unknown");
        }
    });

    it("and tries a parser that could not be loaded again with the next action", async () => {
      let tries = 0;
      const shell = async () => {
        tries++;
        if (tries === 1) throw new Error("lost");
        return readLine;
      };
      const reader = new FactReader({
        statements: new Map([["files", new GlobTable<FactStatement>({ run: { shell: "command" } })]]),
        parsers: { shell },
      });
      const action = newAction({ target: "files", tool: "run", arguments: { command: "ls" } });
      expect((await reader.describe(action)).facts?.effect).to.equal("unknown");
      expect((await reader.describe(action)).facts?.effect).to.equal("read");
    });

    it("to both readings of the arguments of git: of a shell, and split at blanks", async () => {
      for (const args of ["status", "git status", ["status"], ["git", "status"]]) {
        const facts = await factsOf({ git: "args" }, { args });
        expect(
          facts?.git?.map(({ subcommand }) => subcommand),
          String(args),
        ).to.deep.equal(["status"]);
        expect(facts?.effect, String(args)).to.equal("read");
        expect(facts).to.not.have.property("shell");
      }
      expect(await effectOf({ git: "args" }, { args: "log  push" })).to.equal("network");
    });
  });

  it("reads direct actions without a statement", async () => {
    for (const [protocol, args, effect] of [
      ["shell", { command: "rm x", cwd: "/srv" }, "delete"],
      ["shell", {}, "unknown"],
      ["git", { args: ["push"] }, "network"],
      ["sql", { statement: "select 1", dialect: "postgresql" }, "read"],
      ["sql", { statement: "select 1" }, "read"],
      ["sql", { statement: "drop table a", dialect: "postgresql" }, "write"],
      ["http", { url: "https://a.example" }, "write"],
      ["http", {}, "unknown"],
    ] as const)
      expect(
        await effectOf(undefined, args, { protocol, capability: "write" }),
        `${protocol} ${JSON.stringify(args)}`,
      ).to.equal(effect);
  });

  it("reads the SQL of direct actions in the operator's dialect, else in every dialect, whatever the agent says", async () => {
    const sqlOf = async (statement: string, dialectOf?: () => "mysql"): Promise<ActionFacts["sql"]> => {
      const reader = new FactReader({ parsers: shippedParsers, ...(dialectOf && { dialectOf }) });
      const args = { statement, dialect: "postgresql" };
      return (await reader.describe({ ...newAction(), protocol: "sql", target: "db", arguments: args })).facts?.sql;
    };
    for (const [statement, everywhere, inMysql] of [
      ["select name from users where id = 1", "read", "read"],
      ["select `name` from users", "unknown", "read"],
      ["select 1 /*! ; drop table users */", "unknown", "unknown"],
      ["delete from users where id = 1", "delete", "delete"],
    ] as const) {
      expect((await sqlOf(statement))?.effect, statement).to.equal(everywhere);
      expect((await sqlOf(statement, () => "mysql"))?.effect, statement).to.equal(inMysql);
    }
    const deleted = await sqlOf("delete from users where id = 1");
    expect(deleted).to.include({ parsed: true, dialect: null });
    expect(deleted?.statements.map(({ kind, tables }) => [kind, tables.write])).to.deep.equal([["delete", ["users"]]]);
  });
});
