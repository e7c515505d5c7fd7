import { expect } from "chai";
import { type AssetName, consoleAssets } from "../../../core/admin/console/assets.ts";
import { readAnswer } from "../../support/event-stream.ts";
import {
  type AdminRouteId,
  isForPeople,
  operations,
  type Route,
  type RouteId,
  routes,
} from "../../support/route-table.ts";
import { type HeaderList, send, type WireRequest, type WireResponse } from "../../support/wire.ts";
import { echoCall, effectsOf, holdCall, type KeyHolder, keys, openWorld, portsOf, type World } from "./world.ts";

/** Everyone who may come: the holders of keys, somebody with a wrong key, somebody without. */
type Visitor = KeyHolder | "wrong" | "none";

/** What the visitors get, in the order of `visitors`. */
type Row = readonly [admin: number, operator: number, viewer: number, foreign: number, wrong: number, none: number];

const visitors: readonly Visitor[] = ["admin", "operator", "viewer", "foreign", "wrong", "none"];
const everyone: Row = [200, 200, 200, 200, 200, 200];
const everyKey: Row = [200, 200, 200, 200, 401, 401];

const assetRows = Object.fromEntries(consoleAssets.map(({ name }) => [`console.asset.${name}`, everyone])) as Readonly<
  Record<`console.asset.${AssetName}`, Row>
>;

/** The compiler asks for a row for each route of the table, so a new route has none until somebody decides. */
const matrix: Readonly<Record<RouteId, Row>> = {
  "mcp.post": everyKey,
  "mcp.stream": [405, 405, 405, 405, 401, 401],
  "mcp.end": [404, 404, 404, 404, 401, 401],
  "sse.open": everyKey,
  "sse.post": [404, 404, 404, 404, 401, 401],
  "model.chat": everyKey,
  "model.messages": everyKey,
  "model.responses": everyKey,
  "model.count": everyKey,
  "model.embeddings": everyKey,
  "model.list": everyKey,
  "model.get": everyKey,
  "model.gemini": everyKey,
  "model.gemini_v1": everyKey,
  "model.gemini_list": everyKey,
  "model.gemini_model": everyKey,
  "action.evaluate": everyKey,
  "action.hook": everyone, // who may not is denied in the agent's form: after another status the tool would run
  "live.open": [426, 426, 426, 426, 426, 426],
  "gateway.health": everyone,
  "admin.health": everyone,
  "admin.metrics": everyKey,
  "admin.sessions": everyKey,
  "admin.session": [200, 200, 200, 404, 401, 401],
  "admin.export": [200, 200, 200, 404, 401, 401],
  "admin.report": [200, 200, 200, 404, 401, 401],
  "admin.verify": [200, 200, 403, 200, 401, 401],
  "admin.evidence_verify": [200, 200, 403, 200, 401, 401],
  "admin.checkpoint": everyKey,
  "admin.keys": everyKey,
  "admin.rotate": [200, 403, 403, 200, 401, 401],
  "admin.prune": [400, 403, 403, 400, 401, 401], // a tool call of MCP names no time
  "admin.erase": [400, 403, 403, 400, 401, 401],
  "admin.evidence_jobs": everyKey,
  "admin.approvals": everyKey,
  "admin.approval_history": everyKey,
  "admin.approval": [200, 200, 200, 404, 401, 401],
  // The approval of this world is denied already.
  "admin.approve": [409, 409, 403, 404, 401, 401],
  "admin.deny": [409, 409, 403, 404, 401, 401],
  "admin.break_glass": everyKey,
  "admin.break_glass_close": [409, 403, 403, 404, 401, 401],
  "admin.explain": [200, 200, 403, 404, 401, 401],
  "admin.policies": everyKey,
  "admin.plugins": everyKey,
  "admin.rules": everyKey,
  "admin.test_action": [400, 400, 403, 400, 401, 401], // a tool call of MCP is no description of an action
  "admin.simulate": [400, 400, 403, 400, 401, 401],
  "admin.shadow_decisions": everyKey,
  "admin.graphql": [400, 400, 400, 400, 401, 401], // a tool call of MCP is no query
  "admin.graphql_get": [400, 400, 400, 400, 401, 401],
  "admin.usage": everyKey,
  "admin.upstreams": everyKey,
  "admin.providers": everyKey,
  "admin.dead_letters": [200, 200, 403, 200, 401, 401],
  "admin.redeliver": [404, 403, 403, 404, 401, 401],
  "admin.session_list": everyKey,
  "admin.killed": everyKey,
  "admin.kills": everyKey,
  "admin.kill_scope": [400, 400, 403, 400, 401, 401],
  "admin.release_scope": [400, 400, 403, 400, 401, 401],
  "admin.session_state": [200, 200, 200, 404, 401, 401],
  "admin.session_reset": [400, 400, 403, 400, 401, 401],
  "admin.kill": [400, 400, 403, 400, 401, 401], // the body of a tool call is none of theirs
  "admin.release": [400, 400, 403, 400, 401, 401],
  "admin.tickets": everyKey,
  "admin.ticket_issue": [400, 400, 403, 400, 401, 401],
  "admin.ticket_keys": everyKey,
  "admin.ticket_revoke": [404, 404, 403, 404, 401, 401], // the id of a session is none of a ticket
  // This world makes no backups.
  "admin.backup": [404, 403, 403, 404, 401, 401],
  "admin.backups": [404, 404, 403, 404, 401, 401],
  "admin.definitions": everyKey,
  "admin.definition": [404, 404, 404, 404, 401, 401],
  "admin.definition_approve": [400, 400, 403, 400, 401, 401], // a tool call of MCP is no review
  "admin.definition_deny": [400, 400, 403, 400, 401, 401],
  "admin.manifests": everyKey,
  "admin.manifest": [404, 404, 404, 404, 401, 401], // there is none
  "admin.declare": [400, 400, 403, 400, 401, 401],
  "admin.withdraw": [404, 404, 403, 404, 401, 401],
  "admin.openapi": everyKey,
  "dashboard.page": everyone, // its data is another matter: `test/e2e/console/pages.test.ts`
  ...assetRows,
  "dashboard.live": [426, 426, 426, 426, 426, 426],
  "metrics.health": everyone,
  "metrics.scrape": everyone,
  "console.session": [200, 200, 200, 200, 401, 200],
  "console.issue_link": everyKey,
  "console.link": [401, 401, 401, 401, 401, 401], // there is no such link
  "console.sign_in": [404, 404, 404, 404, 404, 404], // this world has no provider to sign in at
  "console.callback": [404, 404, 404, 404, 404, 404],
  "console.sign_out": [403, 403, 403, 403, 401, 401], // none of them has the token of a session
};

const all = Object.entries(routes) as [RouteId, Route][];
const pathVariants: readonly [string, (path: string) => string][] = [
  ["a doubled slash", (path) => `/${path}`],
  ["a doubled slash inside", (path) => path.replace(/(.)\//, "$1//").replace(/^\/(\w+)$/, "/$1//")],
  ["a trailing slash", (path) => `${path}/`],
  ["a dot segment", (path) => `/.${path}`],
  ["a parent segment", (path) => `/x/..${path}`],
  ["an escaped parent segment", (path) => `/x/%2e%2e${path}`],
  ["an escaped letter", (path) => path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`)],
  ["an escaped slash", (path) => `/${path.slice(1).replace("/", "%2f")}%2f`],
  ["a doubly escaped slash", (path) => `${path}%252f`],
  ["an escaped NUL", (path) => `${path}%00`],
  ["another case", (path) => path.toUpperCase()],
  ["a matrix parameter", (path) => `${path};v=1`],
  ["a backslash", (path) => `\\${path.slice(1)}`],
  ["a fragment", (path) => `${path}#x`],
  ["the absolute form", (path) => `http://localhost${path}`],
  ["the absolute form of another host", (path) => `http://evil.example${path}`],
  ["no leading slash", (path) => path.slice(1)],
  ["a tab", (path) => `${path}\t`],
  ["Latin-1 letters", (path) => `${path}\xe9`],
];

const mockProvider = `
providers: [{ name: mock, type: mock, models: [mock] }]
model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }`;

describe("access", () => {
  let world: World;
  let session: string;
  let approval: string;
  let decision: string;
  before(async () => {
    world = await openWorld(mockProvider);
    await send(world.gateway.url, requestFor(routes["mcp.post"], "operator"));
    const sessions = await send(world.gateway.adminUrl, requestFor(routes["admin.sessions"], "operator"));
    session = (JSON.parse(sessions.body) as { items: [{ id: string }] }).items[0].id;
    approval = await holdCall(world);
    const held = await send(world.gateway.adminUrl, {
      ...requestFor(routes["admin.approval"], "operator"),
      target: pathOf(routes["admin.approval"]),
    });
    decision = (JSON.parse(held.body) as { approval: { evaluation: { id: string } } }).approval.evaluation.id;
    const denied = await send(world.gateway.adminUrl, {
      ...requestFor(routes["admin.deny"], "admin"),
      target: pathOf(routes["admin.deny"]),
    });
    expect(denied.status).to.equal(200);
  });
  after(() => world.stop());

  function pathOf({ path, method }: Route): string {
    if (path.endsWith("/:model")) return path.replace(":model", method === "POST" ? "mock:generateContent" : "mock");
    if (path.includes("/decisions/")) return path.replace(":id", decision);
    return path
      .replace(":agent", "codex")
      .replace(":task", "nightly")
      .replace("definitions/:id", `definitions/def_${"0".repeat(32)}`)
      .replace(":id", /approvals|break-glass/.test(path) ? approval : session);
  }

  function ask(route: Route, visitor: Visitor, port: string = route.port): Promise<Omit<WireResponse, "body">> {
    const request = requestFor(route, visitor);
    const target = pathOf(route);
    return readAnswer(portsOf(world.gateway)[port] as string, { ...request, target });
  }

  it("has a row for each route, and no other [S5]", () => {
    expect(Object.keys(matrix)).to.have.members(Object.keys(routes));
  });

  it("has its admin API below /admin/v1/ of the admin port, with health and metrics beside it [R1.2-5, R9-1]", () => {
    const admin = all.filter(([, { port }]) => port === "admin").map(([, { path }]) => path);
    expect(admin.filter((path) => !path.startsWith("/admin/v1/"))).to.deep.equal(["/health", "/metrics"]);
    expect(all.filter(([, { port, path }]) => port !== "admin" && path.startsWith("/admin"))).to.deep.equal([]);
  });

  it("serves MCP at /mcp of the gateway port alone [R1.2-2]", async () => {
    for (const [port, url] of Object.entries(portsOf(world.gateway))) {
      const { status, body } = await send(url, { ...requestFor(routes["mcp.post"], "operator"), target: "/mcp" });
      expect([status, body.includes('"result"')], port).to.deep.equal(port === "gateway" ? [200, true] : [404, false]);
    }
  });

  for (const [id, route] of all) {
    it(`gives ${id} to exactly those who may have it [S5, R1.1-18, R4.2-10]`, async () => {
      const answers: number[] = [];
      for (const visitor of visitors) answers.push((await ask(route, visitor)).status);
      expect(answers).to.deep.equal(matrix[id]);
    });
  }

  it("serves no route on another port [S5, R5-16]", async () => {
    const served = new Set(all.map(([, { port, method, path }]) => `${port} ${method} ${path}`));
    const paths = new Set(all.map(([, { port, path }]) => `${port} ${path}`));
    for (const [id, route] of all) {
      for (const port of ["gateway", "admin", "metrics"]) {
        if (served.has(`${port} ${route.method} ${route.path}`)) continue;
        if (port === "metrics" && isForPeople(route)) continue; // see `test/e2e/console`
        const expected = paths.has(`${port} ${route.path}`) ? 405 : 404;
        expect((await ask(route, "admin", port)).status, `${id} on ${port}`).to.equal(expected);
      }
    }
  });

  it("serves no other method than the table says, and runs nothing for it [S5, R4.1-7, R7-8]", async () => {
    const effects = await effectsOf(world, async () => {
      for (const [id, route] of all) {
        const usual = all.filter(([, { port, path }]) => port === route.port && path === route.path);
        const methods = usual.flatMap(([, { method }]) => (method === "GET" ? ["GET", "HEAD"] : [method]));
        for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "GET"]) {
          if (methods.includes(method)) continue;
          const response = await ask({ ...route, method: method as Route["method"] }, "admin");
          expect(response.status, `${method} ${id}`).to.equal(405);
          expect(response.headers.get("allow"), `${method} ${id}`).to.equal(methods.join(", "));
        }
      }
    });
    expect(effects).to.deep.equal({ calls: 0, records: 0 });
  });

  for (const [what, vary] of pathVariants) {
    it(`answers ${what} on any route with 404 or 400, whoever asks [S8, R4.1-13]`, async () => {
      const effects = await effectsOf(world, async () => {
        for (const [id, route] of all) {
          for (const visitor of ["admin", "none"] as const) {
            const target = vary(pathOf(route));
            if (target === route.path) continue; // nothing of `/` can be spelt like that
            const url = portsOf(world.gateway)[route.port] as string;
            const { status } = await send(url, { ...requestFor(route, visitor), target });
            expect(status, `${id} as ${target}`).to.be.oneOf([404, 400]);
          }
        }
      });
      expect(effects).to.deep.equal({ calls: 0, records: 0 });
    });
  }

  it("lets nobody in for a query, and refuses one that an operation does not take [S8]", async () => {
    for (const [id, route] of all) {
      const url = portsOf(world.gateway)[route.port] as string;
      const target = `${pathOf(route)}?limit=10`;
      for (const [index, visitor] of visitors.entries()) {
        const { status } = await readAnswer(url, { ...requestFor(route, visitor), target });
        const plain = matrix[id][index] as number;
        expect(status, `${id} for ${visitor}`).to.equal(refusesQuery(id, plain) ? 400 : plain);
      }
    }
  });
});

/** Whether who gets `plain` without a query is told, with one, that the operation takes none like it. */
function refusesQuery(id: RouteId, plain: number): boolean {
  if (!(id in operations) || routes[id].access === "public") return false;
  // Before the query: the name in the path can be none of a ticket's, nor of a dead letter's.
  if (plain === 401 || plain === 403 || id === "admin.ticket_revoke" || id === "admin.redeliver") return false;
  return operations[id as AdminRouteId].query?.properties.limit === undefined;
}

function requestFor(route: Route, visitor: Visitor): WireRequest {
  const key = visitor === "wrong" ? `wrong-${keys.admin}` : visitor === "none" ? undefined : keys[visitor];
  const credential: HeaderList = key === undefined ? [] : [["x-api-key", key]];
  const { method, path: target } = route;
  if (method !== "POST") {
    const accept = route.path === "/mcp" && method === "GET" ? "text/event-stream" : "*/*";
    const type: HeaderList = method === "GET" ? [] : [["content-type", "application/json"]];
    return { method, target, headers: [...credential, ["accept", accept], ...type] };
  }
  return { method, target, headers: [...credential, ["content-type", "application/json"]], body: bodyOf(route) };
}

const modelRequest = JSON.stringify({ model: "mock", max_tokens: 16, messages: [{ role: "user", content: "hello" }] });

const geminiRequest = JSON.stringify({ contents: [{ parts: [{ text: "hello" }] }] });

const directAction = JSON.stringify({ protocol: "shell", tool: "sh", target: "here", arguments: { command: "ls" } });

function bodyOf({ path }: Route): string {
  if (path.endsWith("/:model")) return geminiRequest;
  if (path === "/v1/responses" || path === "/v1/embeddings") return JSON.stringify({ model: "mock", input: "hello" });
  if (path === "/v1/actions/evaluate") return directAction;
  if (path.startsWith("/v1/")) return modelRequest;
  if (path.endsWith("/close")) return JSON.stringify({ post_mortem: "what happened, and why it did" });
  return path.includes("/approvals/") ? "{}" : echoCall();
}
