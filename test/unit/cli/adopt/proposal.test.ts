import { expect } from "chai";
import { capabilities } from "../../../../core/action/capability.ts";
import type { JsonObject } from "../../../../core/action/json.ts";
import { proposeFor } from "../../../../core/cli/adopt/proposal.ts";

const server = { root: null, name: "any" };
const text = { type: "string" };

function tool(name: string, properties: JsonObject = {}, more: JsonObject = {}): JsonObject {
  return { name, inputSchema: { type: "object", properties, required: Object.keys(properties) }, ...more };
}

function capabilityOf(...given: Parameters<typeof tool>): string {
  return proposeFor(tool(...given), server).capability;
}

describe("proposeFor(definition, server)", () => {
  for (const [name, expected] of [
    ["get_issue", "read"],
    ["listCommits", "read"],
    ["api-search-pages", "read"],
    ["create_or_update_file", "write"],
    ["get_or_delete_row", "delete"],
    ["search_and_replace", "write"],
    ["find_and_destroy", "delete"],
    ["list_deleted_items", "read"],
    ["remove-everything", "delete"],
    ["send_email", "network"],
    ["run_command", "execute"],
    ["deploy_function", "deploy"],
    ["merge_pull_request", "approve"],
    ["ask_model", "generate"],
    ["set_permissions", "approve"],
    ["list_permissions", "read"],
    ["get_env", "execute"],
    ["read_api_key", "execute"],
    ["frobnicate", "execute"],
    ["", "execute"],
    ["x".repeat(100_000), "execute"],
  ] as const) {
    it(`takes \`${name.slice(0, 30)}\` for ${expected}`, () => expect(capabilityOf(name)).to.equal(expected));
  }

  it("believes no annotation that makes a tool more harmless than its name and schema", () => {
    const harmless = { annotations: { readOnlyHint: true, destructiveHint: false } };
    const names = [
      "frobnicate",
      "delete_all",
      "run_command",
      "send_email",
      "write_file",
      "deploy",
      "merge",
      "get_env",
      "fetch",
    ];
    for (const name of names) {
      for (const properties of [{}, { command: text }, { url: text }, { code: text }] as const) {
        const without = capabilityOf(name, properties);
        expect(capabilityOf(name, properties, harmless), name).to.equal(without);
      }
    }
  });

  it("believes it where the name can mean reading, and nothing in the schema says otherwise", () => {
    const reads = { annotations: { readOnlyHint: true } };
    expect(capabilityOf("open_nodes", {}, reads)).to.equal("read");
    expect(capabilityOf("open_nodes")).to.equal("execute");
    expect(capabilityOf("open_page", { url: text }, reads)).to.equal("network");
    expect(capabilityOf("generate_types", { code: text }, reads)).to.equal("execute");
  });

  it("makes what an annotation says only stricter", () => {
    for (const name of ["get_issue", "write_file", "run_command", "delete_row", "frobnicate", "open_nodes"]) {
      const without = capabilities.indexOf(proposeFor(tool(name), server).capability);
      for (const annotations of [{ destructiveHint: true }, { readOnlyHint: false }] as const) {
        const hinted = capabilities.indexOf(proposeFor(tool(name, {}, { annotations }), server).capability);
        expect(hinted, name).to.be.at.least(without);
      }
    }
    expect(capabilityOf("get_issue", {}, { annotations: { destructiveHint: true } })).to.equal("write");
    expect(capabilityOf("frobnicate", {}, { annotations: { destructiveHint: true } })).to.equal("delete");
  });

  it("takes the title for a name where the name says nothing, if both it and the server speak of reading", () => {
    const reads = { annotations: { readOnlyHint: true } };
    expect(capabilityOf("network_activity", {}, { title: "List requests", ...reads })).to.equal("read");
    expect(capabilityOf("network_activity", {}, { title: "List requests" })).to.equal("execute");
    expect(capabilityOf("process_input", {}, { title: "Send input to a process", ...reads })).to.equal("execute");
    expect(capabilityOf("process_input", {}, { title: "Write input" })).to.equal("execute");
    expect(capabilityOf("delete_all", {}, { title: "List requests", ...reads })).to.equal("delete");
  });

  it("looks at what arguments allow", () => {
    expect(capabilityOf("get_page", { url: text })).to.equal("network");
    expect(capabilityOf("get_page", { target: { type: "string", format: "uri" } })).to.equal("network");
    expect(capabilityOf("get_rows", { sql: text })).to.equal("execute");
    expect(capabilityOf("get_result", { script: text })).to.equal("execute");
    expect(capabilityOf("get_page", { filename: { type: "string", description: "where to save it" } })).to.equal(
      "write",
    );
    expect(capabilityOf("get_page", { filename: { type: "string", description: "what to read" } })).to.equal("read");
    expect(capabilityOf("get_page", { output: { type: "string", enum: ["json", "yaml"] } })).to.equal("read");
    expect(capabilityOf("get_page", { output: text })).to.equal("write");
    expect(capabilityOf("get_review", { event: { type: "string", enum: ["COMMENT", "APPROVE"] } })).to.equal("approve");
    expect(capabilityOf("get_thing", { action: { type: "string", enum: ["list", "delete"] } })).to.equal("delete");
    expect(capabilityOf("things", { action: { type: "string", enum: ["list", "get"] } })).to.equal("read");
    expect(capabilityOf("things", { action: { type: "string", enum: ["list", "frobnicate"] } })).to.equal("execute");
  });

  it("states what is parsed, of the arguments that are always there", () => {
    const of = (...given: Parameters<typeof tool>) =>
      proposeFor(tool(...given), { root: "/srv", name: "postgres" }).facts;
    expect(of("run_command", { command: text })).to.deep.equal({ shell: "command" });
    expect(of("run_command", { command: text, args: { type: "array" } })).to.equal(null);
    expect(of("send_redis", { command: text })).to.equal(null);
    expect(of("execute_sql", { query: { type: "string", description: "SQL" } })).to.deep.equal({
      sql: "query",
      dialect: "postgresql",
    });
    expect(of("read_file", { path: text })).to.deep.equal({ path: "path", root: "/srv" });
    expect(of("move_file", { source: text, destination: text })).to.deep.equal({
      path: ["source", "destination"],
      root: "/srv",
    });
    expect(of("fetch", { urls: { type: "array", items: text } })).to.deep.equal({ url: "urls" });
    expect(of("send_mail", { to: text, cc: text, subject: text })).to.deep.equal({ address: ["to", "cc"] });
    const optional = { inputSchema: { type: "object", properties: { path: text } } };
    expect(of("list_files", {}, optional), "a call without it would be held").to.equal(null);
    expect(of("write_file", {}, optional)).to.deep.equal({ path: "path", root: "/srv" });
  });

  it("states no path without a folder, and no dialect that it does not know", () => {
    expect(proposeFor(tool("read_file", { path: text }), server).facts).to.equal(null);
    const { facts, factReasons } = proposeFor(tool("execute_sql", { sql: text }), server);
    expect(facts).to.deep.equal({ sql: "sql" });
    expect(factReasons.join()).to.include("dialect is not known");
    const description = "Runs ClickHouse SQL";
    const other = proposeFor(tool("query_logs", { sql: text }, { description }), { root: null, name: "supabase" });
    expect(other.facts).to.deep.equal({ sql: "sql" });
  });

  it("gives a reason for each proposal that quotes no text of the server but plain names", () => {
    const hostile = "get\n# injected: true\u202e";
    const found = proposeFor(
      tool(
        "things",
        { [hostile]: text, ok_url: text },
        { title: hostile, description: hostile, annotations: { title: hostile } },
      ),
      server,
    );
    expect([...found.reasons, ...found.factReasons].join("; ")).to.match(/^[\w .,:;]+$/);
    expect(JSON.stringify(found.facts)).to.not.include("injected");
  });

  for (const inputSchema of [
    null,
    [],
    { properties: null },
    {
      properties: {
        a: null,
        b: [],
        c: { type: 7 },
        url: { anyOf: [{ anyOf: [{ anyOf: [{ anyOf: [{ anyOf: [{}] }] }] }] }] },
      },
    },
    { properties: Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`a${at}`, {}])) },
  ]) {
    it(`reads a schema like ${JSON.stringify(inputSchema).slice(0, 50)}`, () => {
      expect(proposeFor({ name: "get_x", inputSchema: inputSchema as never }, server).capability).to.be.oneOf([
        "read",
        "network",
      ]);
    });
  }
});
