import { expect } from "chai";
import { send, type WireResponse } from "../../support/wire.ts";
import {
  echoCall,
  holdCall,
  type KeyHolder,
  keys,
  messageHeaders,
  openWorld,
  post,
  type World,
} from "../wire/world.ts";

interface Told {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions?: { readonly code: string } }[];
}

describe("GET and POST /admin/v1/graphql", () => {
  let world: World;
  let approval: string;
  before(async () => {
    world = await openWorld();
    const label: [string, string] = ["x-gateway-session-id", "asked-about"];
    await post(world, echoCall(), { headers: [...messageHeaders(), label] });
    approval = await holdCall(world);
  });
  after(() => world.stop());

  const ask = (body: unknown, holder: KeyHolder = "viewer"): Promise<WireResponse> =>
    send(world.gateway.adminUrl, {
      method: "POST",
      target: "/admin/v1/graphql",
      headers: messageHeaders(holder),
      body: typeof body === "string" ? body : JSON.stringify(body),
    });

  async function tell(query: string, holder: KeyHolder = "viewer", variables: object = {}): Promise<Told> {
    const { status, body } = await ask({ query, variables }, holder);
    expect(status, body).to.equal(200);
    return JSON.parse(body) as Told;
  }

  it("tells as much of everything as is asked for [R4.2-13]", async () => {
    const { data, errors } = await tell(`{
      decisions { decision tool label }
      approvals { items { id state action { tool } evaluation { rules } } next }
      approval(id: "${approval}") { required }
      sessions { items { session state risk } }
      evidence { writable state seq }
      evidenceSessions { items { id label allow review } }
      usage(from: "2026-01-01", to: "2026-01-02") { totals { requests } }
      policies { name kind signer mode }
      plugins { name }
    }`);
    expect(errors).to.equal(undefined);
    expect(data?.decisions).to.deep.include({ decision: "allow", tool: "echo", label: "asked-about" });
    expect(data?.approvals).to.deep.equal({
      items: [{ id: approval, state: "pending", action: { tool: "echo" }, evaluation: { rules: ["open.review"] } }],
      next: null,
    });
    expect(data?.approval).to.deep.equal({ required: 1 });
    expect(data?.evidence).to.deep.include({ writable: true, state: "ready" });
    expect(data?.usage).to.deep.equal({ totals: { requests: 0 } });
    expect(data?.policies).to.deep.include({ name: "open", kind: "pack", signer: null, mode: "enforce" });
    expect(data?.plugins).to.deep.equal([]);
    const sessions = data?.evidenceSessions as { items: { id: string; label: string }[] };
    const id = sessions.items.find(({ label }) => label === "asked-about")?.id;
    const more = await tell(
      "query One($id: ID!) { session(id: $id) { state actions history { tool } } records(session: $id, limit: 1) { items { kind whole } next } }",
      "viewer",
      { id },
    );
    expect(more.data?.session).to.deep.equal({ state: "active", actions: 1, history: [{ tool: "echo" }] });
    const records = more.data?.records as { items: { kind: string; whole: { tenant: string } }[]; next: string };
    expect(records.items[0]).to.include({ kind: "decision" });
    expect(records.items[0]?.whole.tenant).to.equal("acme");
    expect(records.next).to.equal("1");
  });

  it("answers a GET alike, with variables", async () => {
    const query = encodeURIComponent("query A($id: ID!) { approval(id: $id) { id } }");
    const variables = encodeURIComponent(JSON.stringify({ id: approval }));
    const { body } = await send(world.gateway.adminUrl, {
      target: `/admin/v1/graphql?query=${query}&variables=${variables}`,
      headers: [["x-api-key", keys.viewer]],
    });
    expect(JSON.parse(body)).to.deep.equal({ data: { approval: { id: approval } } });
  });

  it("tells another tenant nothing, and of ids that are not its own that they are unknown", async () => {
    const unknown = await tell('{ approval(id: "apr_00000000000000000000000000000000") { id } }', "foreign");
    const foreign = await tell(`{ approval(id: "${approval}") { id } }`, "foreign");
    expect(foreign.data).to.equal(null);
    expect(foreign.errors?.[0]?.extensions).to.deep.equal({ code: "NOT_FOUND" });
    expect(foreign.errors?.[0]?.extensions).to.deep.equal(unknown.errors?.[0]?.extensions);
    const { data } = await tell(
      "{ decisions { id } approvals { items { id } } evidenceSessions { items { id } } }",
      "foreign",
    );
    expect(data).to.deep.equal({ decisions: [], approvals: { items: [] }, evidenceSessions: { items: [] } });
  });

  const refused: readonly (readonly [what: string, body: unknown, expected: string])[] = [
    ["50 levels", { query: `${"{ evidence ".repeat(50)}{ seq }${" }".repeat(50)}` }, "at most 8 deep"],
    [
      "1,000 aliases",
      { query: `{ ${Array.from({ length: 1_000 }, (_, n) => `a${n}: evidence { seq }`).join(" ")} }` },
      "JSON exceeds a bound",
    ],
    [
      "300 fields",
      { query: `{ ${Array.from({ length: 300 }, (_, n) => `a${n}: decisions { id }`).join(" ")} }` },
      "at most 200 fields",
    ],
    [
      "pages of pages",
      {
        query:
          '{ session(id: "a") { history { tool target } } a: decisions(limit: 500) { id tool target rules action time label task risk principal session protocol capability decision dispatched by_default duration_us x: id y: id z: id w: id } }',
      },
      "a cost of at most 10000",
    ],
    [
      "a page that a variable makes large",
      {
        query:
          "query Q($n: Int) { decisions(limit: $n) { id tool target rules action time label task risk principal session protocol capability decision dispatched by_default duration_us x: id y: id z: id w: id } }",
        variables: { n: 5_000 },
      },
      "a cost of at most 10000",
    ],
    [
      "a fragment that spreads itself",
      { query: "{ ...A } fragment A on Query { evidence { seq } ...A }" },
      "no fragment to spread itself",
    ],
    [
      "fragments that multiply",
      {
        query: `{ ...A ${Array.from({ length: 8 }, (_, n) => `...F${n}`).join(" ")} } fragment A on Query { evidence { seq } } ${Array.from({ length: 8 }, (_, n) => `fragment F${n} on Query { ${Array.from({ length: 20 }, (_, m) => `b${n}x${m}: evidence { seq }`).join(" ")} }`).join(" ")}`,
      },
      "at most 200 fields",
    ],
    ["introspection", { query: "{ __schema { types { name } } }" }, "introspection"],
    ["introspection of a type", { query: '{ __type(name: "Query") { name } }' }, "introspection"],
    [
      "a batch",
      [{ query: "{ evidence { seq } }" }, { query: "{ evidence { seq } }" }],
      "expected the body to be an object",
    ],
    ["a change", { query: "mutation { approve }" }, "queries and fragments only"],
    ["an unknown field", { query: "{ evidence { secret } }" }, "Cannot query field"],
    ["no query", { query: "nonsense {" }, "Syntax Error"],
    ["a long query", { query: `{ evidence { seq } } #${"x".repeat(17_000)}` }, "at most 16384 characters"],
    ["an unknown member", { query: "{ evidence { seq } }", extensions: {} }, "got `extensions`"],
    ["variables that are no object", { query: "{ evidence { seq } }", variables: [1] }, "`variables` to be an object"],
    ["a schema", { query: "type A { b: Int }" }, "queries and fragments only"],
  ];
  for (const [what, body, expected] of refused) {
    it(`refuses ${what} [S71] [S17]`, async () => {
      const { status, body: answer } = await ask(body);
      expect(status, answer).to.equal(400);
      expect((JSON.parse(answer) as { detail: string }).detail).to.include(expected);
    });
  }

  it("says of a field what is wrong with what it was asked, and answers the others", async () => {
    const { data, errors } = await tell("{ evidence { seq } decisions(limit: 0) { id } }");
    expect([data, errors?.[0]?.extensions]).to.deep.equal([null, { code: "INVALID_PARAMS" }]);
    const { data: days } = await tell('{ usage(from: "2026-01-01", to: "yesterday") { next } }');
    expect(days).to.equal(null);
  });
});
