import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { fetchBytes, fetchItems, fetchWhole, type Values } from "../../../core/cli/admin-client.ts";
import { Type } from "../../../core/config/type.ts";
import type { AdminOperation } from "../../../core/operation/operation.ts";

const list: AdminOperation = {
  id: "admin.list",
  method: "GET",
  path: "/list",
  access: "key",
  tag: "service",
  summary: "List things",
  query: Type.Object({ limit: Type.Integer(), sort: Type.String(), cursor: Type.String() }),
  response: { status: 200, description: "A page.", content: {} },
  errors: [],
};

/** What the admin port answers to each question in turn; the last of it for ever. Null: it never ends. */
type Answers = readonly (string | object | null)[];

describe("fetchItems(options, operation, values, limit)", () => {
  let server: Server;
  let answers: Answers;
  let asked: string[];
  let admin: string;
  const keyBefore = process.env.GATEWAY_API_KEY;

  before(async () => {
    process.env.GATEWAY_API_KEY = "agw_test";
    server = createServer((request, response) => {
      const answer = answers[Math.min(asked.length, answers.length - 1)];
      asked.push(request.url ?? "");
      if (answer === null) response.writeHead(200).flushHeaders();
      else response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    admin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  beforeEach(() => {
    asked = [];
  });

  after(() => {
    server.close();
    server.closeAllConnections();
    if (keyBefore === undefined) delete process.env.GATEWAY_API_KEY;
    else process.env.GATEWAY_API_KEY = keyBefore;
  });

  async function collect(given: Answers, values?: Values, limit?: number): Promise<readonly unknown[] | string> {
    answers = given;
    const items: unknown[] = [];
    try {
      for await (const item of fetchItems({ admin }, list, values, limit)) items.push(item);
      return items;
    } catch (error) {
      const { code, detail } = GatewayError.from(error);
      return `${code}: ${detail}`;
    }
  }

  it("asks page by page to the end, a cursor as it was told", async () => {
    const pages = [
      { items: [1, 2], next: "a b&c" },
      { items: [], next: "d" },
      { items: [3], next: null },
    ];
    expect(await collect(pages, { sort: "risk" })).to.deep.equal([1, 2, 3]);
    expect(asked).to.deep.equal([
      "/list?limit=500&sort=risk",
      "/list?limit=500&sort=risk&cursor=a+b%26c",
      "/list?limit=500&sort=risk&cursor=d",
    ]);
  });

  it("asks for no page beyond what is wanted", async () => {
    const page = (from: number, count: number): object => ({
      items: Array.from({ length: count }, (_, index) => from + index),
      next: String(from + count),
    });
    expect(await collect([page(0, 500), page(500, 101)], {}, 601)).to.have.lengthOf(601);
    expect(asked).to.deep.equal(["/list?limit=500", "/list?limit=101&cursor=500"]);
  });

  it("asks for no page before it is wanted", async () => {
    answers = [{ items: [1, 2], next: "more" }];
    for await (const item of fetchItems({ admin }, list)) if (item === 2) break;
    expect(asked).to.have.lengthOf(1);
  });

  it("gives a list up that has no end", async () => {
    expect(await collect([{ items: [], next: "again" }])).to.match(/^UPSTREAM_INVALID: expected the list .* to end/);
    expect(asked).to.have.lengthOf(10_000);
  });

  for (const [what, answer] of [
    ["no JSON", "<html>"],
    ["null", "null"],
    ["no object", "[]"],
    ["no items", { next: null }],
    ["items that are no list", { items: {}, next: null }],
    ["no end", { items: [] }],
    ["an empty cursor", { items: [], next: "" }],
    ["a cursor that is no text", { items: [], next: 7 }],
  ] as const) {
    it(`throws UPSTREAM_INVALID for ${what}`, async () => {
      expect(await collect([answer])).to.match(/^UPSTREAM_INVALID: expected /);
      expect(asked).to.have.lengthOf(1);
    });
  }

  describe("fetchWhole(options, operation)", () => {
    it("takes a list that ends with its first page, and no other", async () => {
      answers = [
        { items: [1], next: null },
        { items: [1], next: "more" },
      ];
      expect(await fetchWhole({ admin }, list)).to.deep.equal([1]);
      const error = await fetchWhole({ admin }, list).catch((cause: unknown) => GatewayError.from(cause).code);
      expect(error).to.equal("UPSTREAM_INVALID");
      expect(asked).to.deep.equal(["/list", "/list"]);
    });
  });

  it("fetchBytes says that an answer did not come whole in the time that it was given", async () => {
    answers = [null];
    const refused = await fetchBytes({ admin }, list, {}, 50).catch(GatewayError.from);
    expect((refused as GatewayError).message).to.match(
      /no whole answer from `http:.*\/list` within 0.05 s; try again when it has less to do$/,
    );
  });
});
