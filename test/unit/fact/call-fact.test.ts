import { expect } from "chai";
import type { ActionFacts, FactStatement } from "../../../core/action/action-fact.ts";
import type { Capability } from "../../../core/action/capability.ts";
import { GlobTable } from "../../../core/action/glob.ts";
import type { AskedCall } from "../../../core/fact/call-fact.ts";
import { FactReader } from "../../../core/fact/fact-reader.ts";
import { describeFacts } from "../../../core/fact/fact-words.ts";
import { shippedParsers } from "../../../core/fact/shipped-parser.ts";
import { makeAction } from "../../support/action.ts";

const facts: Readonly<Record<string, FactStatement>> = {
  bash: { shell: "command" },
  query: { sql: "statement", dialect: "sqlite" },
  other: { sql: "statement", dialect: "mysql" },
  open: { path: ["paths"] },
  git: { git: "args" },
};
const capabilities: Readonly<Record<string, Capability>> = { open: "read", note: "write" };

async function factsOf(calls: readonly AskedCall[]): Promise<ActionFacts | undefined> {
  const statements = { facts: new GlobTable(facts), capabilities: new GlobTable(capabilities), read: () => calls };
  const reader = new FactReader({ parsers: shippedParsers, calls: statements });
  const answer = makeAction({ protocol: "model", phase: "output", capability: "generate", output: {} });
  return (await reader.describe(answer)).facts;
}

const call = (tool: string | null, args: AskedCall["arguments"]): AskedCall => ({ tool, arguments: args });
const bash = (command: string): AskedCall => call("bash", JSON.stringify({ command }));

describe("the facts of the calls that an answer asks for", () => {
  it("are those of all calls together, and each call with its effect", async () => {
    const found = await factsOf([
      bash("ls /srv/a"),
      call("open", { paths: ["/srv/b"] }),
      call("note", {}),
      call("git", { args: "push --force" }),
      call("query", { statement: "DELETE FROM t" }),
      call("weather", { path: "/srv/unstated" }),
    ]);
    expect(found?.effect).to.equal("network");
    expect(found?.calls).to.deep.equal([
      { tool: "bash", effect: "read" },
      { tool: "open", effect: "read" },
      { tool: "note", effect: "write" },
      { tool: "git", effect: "network" },
      { tool: "query", effect: "delete" },
    ]);
    expect(found?.shell?.commands.map(({ name }) => name)).to.deep.equal(["ls"]);
    expect(found?.git?.map(({ force }) => force)).to.deep.equal([true]);
    expect(found?.sql?.statements.map(({ kind }) => kind)).to.deep.equal(["delete"]);
    expect(found?.path?.map(({ plain }) => plain)).to.deep.equal(["/srv/b"]);
    expect(found?.paths).to.include.members(["/srv/a", "/srv/b"]).and.not.include("/srv/unstated");
  });

  it("have words that name the tools, as text, before what they do", async () => {
    const calls = [bash("rm -rf /srv/x"), call("note", {}), call(null, {})];
    expect(describeFacts((await factsOf(calls)) as ActionFacts)).to.deep.equal([
      'asks for calls of bash, note, ""',
      "runs rm on /srv/x",
      "does what cannot be told from its arguments",
    ]);
  });

  it("are not there where no call is of a stated tool", async () => {
    expect(await factsOf([])).to.equal(undefined);
    expect(await factsOf([call("weather", {})])).to.equal(undefined);
  });

  it("say no dialect where calls have several", async () => {
    const statement = { statement: "SELECT 1" };
    const found = await factsOf([call("query", statement), call("other", statement)]);
    expect([found?.effect, found?.sql?.dialect]).to.deep.equal(["read", null]);
  });

  const many = (count: number): string[] => Array.from({ length: count }, (_, index) => `/srv/${index}`);
  for (const [title, calls] of Object.entries({
    "a call has no readable name": [call(null, {}), bash("ls")],
    "a name is longer than any": [call("bash".padEnd(129, "x"), {}), call(null, "")],
    "arguments are no JSON": [bash("ls"), call("open", "{")],
    "arguments are no object": [bash("ls"), call("note", "[]")],
    "arguments have a member twice": [call("open", '{"paths":["/a"],"paths":["/b"]}')],
    "arguments are too long together": [call("note", " ".repeat(1_048_576)), call("open", '{"paths":["/a"]}')],
    "arguments are too deep": [call("note", `{"a":${"[".repeat(65)}${"]".repeat(65)}}`)],
    "there are too many calls": Array.from({ length: 21 }, () => bash("ls")),
    "there are too many paths together": [call("open", { paths: many(20) }), call("open", { paths: many(1) })],
    "there are too many commands together": Array.from({ length: 3 }, () => bash(Array(20).fill("ls").join(";"))),
  })) {
    it(`are unknown where ${title}`, async () => {
      const found = await factsOf(calls);
      expect(found?.effect).to.equal("unknown");
      expect(found?.calls?.length).to.be.within(1, 20);
    });
  }

  it("take an empty text as no arguments", async () => {
    expect((await factsOf([call("note", "")]))?.effect).to.equal("write");
  });
});
