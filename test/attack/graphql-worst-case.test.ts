import { expect } from "chai";
import { type KeyHolder, messageHeaders, openWorld, type World } from "../e2e/wire/world.ts";
import { send, type WireResponse } from "../support/wire.ts";

/** Repeats a text, with its number in it. */
function many(count: number, text: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => text(index)).join(" ");
}

const fields = many(30, (index) => `a${index}: id`);
const tooDear = "a cost of at most 10000";

/** Queries made to cost much: each is refused before it is validated or executed, by the bound that its end names. */
const refused: Readonly<Record<string, readonly [query: string | object, expected: string]>> = {
  "a page whose size is a variable's default": [
    `query Q($n: Int = 500) { decisions(limit: $n) { ${fields} } }`,
    tooDear,
  ],
  "a page whose size is the default of one of two operations": [
    `query P($n: Int = 1) { decisions(limit: $n) { id } } query Q($n: Int = 500) { decisions(limit: $n) { ${fields} } }`,
    tooDear,
  ],
  "a page of a fragment that two operations spread, one with a large default": [
    `query P($n: Int = 500) { ...F } query Q($n: Int = 1) { ...F } fragment F on Query { decisions(limit: $n) { ${fields} } }`,
    tooDear,
  ],
  "a variable beside its small default": [
    { query: `query Q($n: Int = 1) { decisions(limit: $n) { ${fields} } }`, variables: { n: 500 } },
    tooDear,
  ],
  "a report under 66 aliases": [
    `{ ${many(66, (index) => `a${index}: usage(from: "2026-01-01", to: "2026-01-31", limit: 1) { next }`)} }`,
    tooDear,
  ],
  "a fragment of 900 equal fields that is spread nowhere": [
    `{ evidence { seq } } fragment F on Evidence { ${many(900, () => "seq")} }`,
    "every fragment to be spread",
  ],
  "480 equal fields with fields, spread nowhere": [
    `{ evidence { seq } } fragment F on Query { ${many(480, () => "evidence { seq }")} }`,
    "every fragment to be spread",
  ],
  "fragments that spread one another in a ring, and are spread nowhere": [
    `{ evidence { seq } } ${many(60, (index) => `fragment F${index} on Evidence { seq ...F${(index + 1) % 60} }`)}`,
    "every fragment to be spread",
  ],
  "a fragment of 900 equal fields that has the name of a small one": [
    `{ evidence { ...F } } fragment F on Evidence { ${many(900, () => "seq")} } fragment F on Evidence { seq }`,
    "every fragment to be defined once",
  ],
  "fragments in a ring": [
    `{ evidence { ...F0 } } ${many(60, (index) => `fragment F${index} on Evidence { seq ...F${(index + 1) % 60} }`)}`,
    "no fragment to spread itself",
  ],
  "a chain of 120 fragments that is spread 100 times": [
    `{ ${many(100, () => "...F0")} } ${many(120, (index) => `fragment F${index} on Query { ...F${index + 1} }`)} fragment F120 on Query { evidence { seq } }`,
    tooDear,
  ],
  "fragments that double 60 times": [
    `{ ...F0 } ${many(60, (index) => `fragment F${index} on Query { ...F${index + 1} ...F${index + 1} }`)} fragment F60 on Query { evidence { seq } }`,
    "at most 200 fields",
  ],
  "201 aliases": [`{ ${many(101, (index) => `a${index}: evidence { seq }`)} }`, "at most 200 fields"],
  "50 levels of fields in inline fragments": [
    `${"{ ... { evidence ".repeat(50)} { seq } ${"} }".repeat(50)}`,
    "at most 8 deep",
  ],
  "2,001 tokens": [`{ evidence { ${many(2_000, () => "seq")} } }`, "2000 tokens"],
  "600 directives": [`{ evidence ${many(600, () => "@skip(if: false)")} { seq } }`, "tokens"],
  "a batch of 500": [Array.from({ length: 500 }, () => ({ query: "{ evidence { seq } }" })), "JSON"],
  "a list of 600 variables": [
    { query: "{ evidence { seq } }", variables: { all: Array.from({ length: 600 }, () => 0) } },
    "JSON exceeds a bound",
  ],
  "variables 17 deep": [
    { query: "{ evidence { seq } }", variables: { deep: JSON.parse(`${"[".repeat(17)}${"]".repeat(17)}`) } },
    "JSON exceeds a bound",
  ],
  "a text of 16,385 characters": [{ query: "{ evidence { seq } }", variables: { t: "x".repeat(16_385) } }, "JSON"],
  "a mutation": ["mutation { evidence { seq } }", "queries and fragments only"],
  "a subscription": ["subscription { evidence { seq } }", "queries and fragments only"],
  "a type of its own": ["{ evidence { seq } } type Query { all: Int }", "queries and fragments only"],
  "introspection in a fragment, under an alias": [
    "{ ...F } fragment F on Query { a: __schema { types { name } } }",
    "introspection",
  ],
  "the introspection of one type, inline": ['{ ... on Query { b: __type(name: "Query") { name } } }', "introspection"],
};

describe("a GraphQL query at its worst", () => {
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world.stop());

  function ask(body: unknown, holder: KeyHolder = "viewer"): Promise<WireResponse> {
    const query = typeof body === "string" ? { query: body } : body;
    return send(world.gateway.adminUrl, {
      method: "POST",
      target: "/admin/v1/graphql",
      headers: messageHeaders(holder),
      body: JSON.stringify(query),
    });
  }

  for (const [what, [query, expected]] of Object.entries(refused)) {
    it(`is refused before it runs: ${what} [S71]`, async () => {
      const { status, body } = await ask(query);
      expect(status, body).to.be.oneOf([400, 413]);
      expect(body).to.include(expected);
    });
  }

  it("keeps nobody else from an answer: all of them at once, and a kill beside them [S71, S77]", async () => {
    const hostile = Object.values(refused).map(([query]) => ask(query));
    const ordinary = await ask("{ evidence { state } plugins { name } }", "operator");
    expect(JSON.parse(ordinary.body)).to.deep.equal({ data: { evidence: { state: "ready" }, plugins: [] } });
    const killed = await send(world.gateway.adminUrl, {
      method: "POST",
      target: "/admin/v1/kills",
      headers: messageHeaders("admin"),
      body: JSON.stringify({ scope: "tenant", note: "tried" }),
    });
    expect(killed.status, killed.body).to.equal(200);
    for (const { status } of await Promise.all(hostile)) expect(status).to.be.oneOf([400, 413, 429]);
  });

  it("is still answered where it is as large as it may be", async () => {
    const spread = `{ ${many(10, () => "...F0")} } ${many(20, (index) => `fragment F${index} on Query { ...F${index + 1} }`)} fragment F20 on Query { evidence { seq } }`;
    const page = `query Q($n: Int = 300) { decisions(limit: $n) { ${fields} } }`;
    const report = `{ ${many(4, (index) => `a${index}: usage(from: "2026-01-01", to: "2026-01-31", limit: 1) { totals { requests } }`)} }`;
    for (const query of [spread, page, report]) {
      const { status, body } = await ask(query);
      expect([status, JSON.parse(body).errors], body).to.deep.equal([200, undefined]);
    }
  });
});
