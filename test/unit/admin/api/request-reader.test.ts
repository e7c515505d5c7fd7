import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { expect } from "chai";
import type { Context } from "koa";
import { GatewayError } from "../../../../core/action/error.ts";
import { RequestReader } from "../../../../core/admin/api/request-reader.ts";
import type { AdminRequest } from "../../../../core/operation/operation.ts";
import { type OperationId, operations } from "../../../support/route-table.ts";

const json = { depth: 64, nodes: 10_000, stringLength: 65_536, reader: "exact" } as const;
const approval = `apr_${"0".repeat(32)}`;
/** By the noun of what is not found. */
const names: Readonly<Record<string, string>> = {
  session: `session-v1-${"0".repeat(64)}`,
  ticket: `tkt_${"0".repeat(32)}`,
  definition: `def_${"0".repeat(32)}`,
};

describe("RequestReader", () => {
  const reader = new RequestReader({ bytes: 1_048_576, json });

  /** What is read of a request, or the text of its refusal. */
  async function read(
    id: OperationId,
    querystring = "",
    body?: string,
    name = approval,
  ): Promise<AdminRequest | string> {
    const text = body ?? "";
    const headers = { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) };
    const req = Object.assign(Readable.from([Buffer.from(text)]), { headers, complete: true, socket: {} });
    const ctx = { params: { id: name, task: name }, querystring, req: req as unknown as IncomingMessage };
    try {
      return await reader.read(operations[id as OperationId], ctx as unknown as Context);
    } catch (error) {
      return GatewayError.from(error).message;
    }
  }

  const queries: readonly (readonly [string, OperationId, string, object | string])[] = [
    ["what is left out", "admin.kills", "", { limit: 50 }],
    ["a number", "admin.kills", "limit=7&cursor=a", { limit: 7, cursor: "a" }],
    ["a flag", "admin.session", "disclose=true", { limit: 50, disclose: true }],
    ["a list", "admin.usage", "by=day,model", { by: ["day", "model"], limit: 50 }],
    [
      "one of several times",
      "admin.export",
      "redact=1.output.a&redact=2.output.b",
      { redact: ["1.output.a", "2.output.b"] },
    ],
    [
      "a number of another spelling",
      "admin.kills",
      "limit=1e2",
      "expected `limit` to be an integer from 1 to 500: the items of a page, got `1e2`",
    ],
    [
      "nothing for a number",
      "admin.kills",
      "limit=",
      "expected `limit` to be an integer from 1 to 500: the items of a page, got ``",
    ],
    ["the same twice", "admin.kills", "limit=1&limit=2", "expected one `limit`, got 2"],
    [
      "a slip of the pen",
      "admin.kills",
      "limt=1",
      "expected only `limit`, `cursor` in the query, got `limt`; did you mean `limit`?",
    ],
    ["a parameter where there is none", "admin.policies", "limit=1", "expected nothing in the query, got `limit`"],
    ["a prototype", "admin.kills", "__proto__=1", "expected only `limit`, `cursor` in the query, got `__proto__`"],
    [
      "one word twice",
      "admin.usage",
      "by=day,day",
      "expected `by` to be some of day,principal,provider,model, each once, got `day` twice",
    ],
  ];
  for (const [what, id, query, expected] of queries) {
    it(`reads ${what} of a query`, async () => {
      const name = id === "admin.session" || id === "admin.export" ? `session-v1-${"0".repeat(64)}` : approval;
      const asked = await read(id, query, undefined, name);
      if (typeof expected === "string") expect(asked).to.equal(`invalid params: ${expected}`);
      else expect((asked as AdminRequest).query).to.deep.equal(expected);
    });
  }

  const bodies: readonly (readonly [string, OperationId, string, string])[] = [
    [
      "no reason",
      "admin.session_reset",
      "{}",
      "expected `reason` (1 to 1024 characters: why) in the body, got nothing",
    ],
    [
      "blanks for a reason",
      "admin.session_reset",
      '{"reason":"  "}',
      "expected `reason` to be 1 to 1024 characters: why, got `  `",
    ],
    ["a number", "admin.session_reset", '{"reason":7}', "expected `reason` to be 1 to 1024 characters: why, got `7`"],
    ["a list", "admin.session_reset", "[]", "expected the body to be an object, got an array"],
    [
      "a place further in",
      "admin.simulate",
      '{"actions":[{"tool":"a","target":"b","acton":1}]}',
      "in `actions/0`, got `acton`",
    ],
  ];
  for (const [what, id, body, expected] of bodies) {
    it(`says what is wrong with ${what} for a body`, async () => {
      const name = id === "admin.session_reset" ? `session-v1-${"0".repeat(64)}` : "";
      expect(await read(id, "", body, name)).to.include(expected);
    });
  }

  it("quotes no more than 64 characters, and none that is not seen", async () => {
    const long = (await read("admin.kills", `${"x".repeat(4_000)}=1`)) as string;
    expect(long.length).to.be.lessThan(200);
    expect(await read("admin.kills", "%E2%80%AEtimil=1")).to.include("got `\\u{202e}timil`");
  });

  it("takes none at all for a body where nothing in it is needed, and nowhere else", async () => {
    expect(((await read("admin.approve")) as AdminRequest).body).to.deep.equal({});
    expect(await read("admin.break_glass_close")).to.include("malformed JSON");
  });

  it("answers a name that nothing can have before it looks at anything else", async () => {
    expect(await read("admin.approve", "limit=1", "[", "NONE")).to.equal("not found: no such approval");
  });

  it("reads every example that the document gives of a body", async () => {
    for (const [id, { body, params }] of Object.entries(operations)) {
      if (body === undefined) continue;
      const shape = Object.values(params ?? {})[0]?.absent ?? "";
      const [, name] = Object.entries(names).find(([noun]) => shape.includes(noun)) ?? [];
      const asked = await read(id as OperationId, "", JSON.stringify(body.example), name ?? approval);
      expect(typeof asked === "string" ? asked : asked.body, id).to.deep.include(body.example);
    }
  });
});
