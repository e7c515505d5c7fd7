import { expect } from "chai";
import type { ErrorCode } from "../../../core/action/error.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import { can, type Role } from "../../../core/action/role.ts";
import type { Access } from "../../../core/operation/operation.ts";
import { AnswerCheck, type ApiDocument } from "../../support/api-schema.ts";
import {
  type BadRequest,
  badRequests,
  type GoodRequest,
  queryText,
  statusOf,
  targetOf,
} from "../../support/bad-request.ts";
import type { Person } from "../../support/held-site.ts";
import { OperationWorld } from "../../support/operation-world.ts";
import { isOperation, type OperationId, operations, type RouteId, routes } from "../../support/route-table.ts";
import { knownWords, wordsOf } from "../../support/schema-fault.ts";
import { type HeaderList, send, type WireResponse } from "../../support/wire.ts";

/** Whoever may come; null: somebody without a good key. */
const visitors: Readonly<
  Record<Extract<Person, "adam" | "rita" | "vera" | "foreign"> | "nobody" | "guesser", Role | null>
> = {
  adam: "admin",
  rita: "operator",
  vera: "viewer",
  foreign: "admin",
  nobody: null,
  guesser: null,
};
type Visitor = keyof typeof visitors;

const all = (Object.keys(routes) as RouteId[]).filter(isOperation);
const plenty = "limits: { admin_requests_per_minute: 1000000, admin_unauthenticated_per_minute: 1000000 }";

/** What lists tell of a tenant that no refused request may change. */
const lists = [
  "approvals",
  "approvals?state=approved",
  "approvals/history",
  "break-glass",
  "kills",
  "tickets",
  "ticket-keys",
  "manifests",
  "evidence/keys",
  "webhooks/dead-letters",
  "usage",
  "shadow-decisions",
];

/** How a role is refused that may not have what the route gives, and else the code of the input itself. */
function codeFor(visitor: Visitor, access: Access, code: ErrorCode): ErrorCode {
  const role = visitors[visitor];
  if (role === null) return visitor === "nobody" ? "KEY_MISSING" : "KEY_UNKNOWN";
  const may = access === "key" || access === "caller" || access === "public" || can(role, access);
  return may ? code : "ROLE_FORBIDDEN";
}

describe("every operation × every role × every bad input", () => {
  let world: OperationWorld;
  let check: AnswerCheck;
  let state: string;
  let sizes: readonly number[];
  let asked = 0;
  const good = new Map<OperationId, GoodRequest>();

  before(async () => {
    world = await OperationWorld.start(plenty);
    check = new AnswerCheck(await world.ask<ApiDocument>("openapi.json"));
    await world.ask("manifests", "adam", world.manifest());
    await world.ticket();
    const askings = world.askings();
    for (const id of all) {
      const { id: named, query = {}, body } = askings[id];
      good.set(id, { id: (await named?.()) ?? "", query, body: (body?.() as JsonObject | undefined) ?? null });
    }
    state = await tell();
    sizes = [await size("adam"), await size("foreign")];
  });

  after(() => world.stop());

  async function tell(): Promise<string> {
    const told = { backups: await world.ask("resilience/backups"), calls: await world.calls() };
    const ofBoth = [];
    for (const person of ["adam", "foreign"] as const) {
      for (const path of lists) ofBoth.push([person, path, await world.ask(path, person)]);
      const { items } = await world.ask<{ items: Record<string, unknown>[] }>("sessions", person);
      ofBoth.push(items.map(({ session, state, actions, taints }) => ({ session, state, actions, taints })));
    }
    return JSON.stringify([told, ofBoth], null, 1);
  }

  /** Records in the chain of somebody's tenant. */
  async function size(person: Person): Promise<number> {
    return (await world.ask<{ records: number }>("audit/verify", person, {})).records;
  }

  function ask(
    id: OperationId,
    visitor: Visitor,
    { target, contentType, body }: Omit<BadRequest, "what" | "code">,
  ): Promise<WireResponse> {
    const key =
      visitor === "guesser" ? `wrong-${world.site.key("adam")}` : visitor === "nobody" ? null : world.site.key(visitor);
    const { method } = routes[id];
    const type = contentType ?? (method === "GET" || body !== undefined ? undefined : "application/json");
    const headers: HeaderList = [
      ...(key === null ? [] : [["x-api-key", key] as const]),
      ...(type === undefined ? [] : [["content-type", type] as const]),
    ];
    asked++;
    return send(world.url, { method, target, headers, ...(body === undefined ? {} : { body }) });
  }

  /** What is wrong with how a request was refused; empty where nothing is. */
  function faults(
    id: OperationId,
    visitor: Visitor,
    what: string,
    expected: ErrorCode,
    answer: WireResponse,
  ): readonly string[] {
    const { code } = JSON.parse(answer.body) as { code: ErrorCode };
    const type = answer.headers.get("content-type") ?? "";
    const { method, path } = routes[id];
    const described = check.faults(
      method,
      path.replace(/:(\w+)/g, "{$1}"),
      answer.status,
      type,
      JSON.parse(answer.body),
    );
    const isExpected = code === expected && answer.status === statusOf(expected);
    const told = isExpected ? [] : [`expected ${expected}, got ${answer.status} ${code}`];
    return [...told, ...described].map((each) => `${visitor}, ${what}: ${each}`);
  }

  it("is made of schemas that say nothing beyond what faults are made of", () => {
    const schemas = Object.values(operations).flatMap(({ query, body }) => [
      ...(query === undefined ? [] : [query]),
      ...(body === undefined ? [] : [body.schema]),
    ]);
    expect([...new Set(schemas.flatMap(wordsOf))].filter((word) => !knownWords.has(word))).to.deep.equal([]);
  });

  for (const id of all) {
    it(`${id}: each is refused with its own status and code, and described [S5]`, async () => {
      const bad = badRequests(id, good.get(id) as GoodRequest);
      expect(bad.length).to.be.greaterThan(0);
      const wrong: string[] = [];
      for (const visitor of Object.keys(visitors) as Visitor[]) {
        for (const request of bad) {
          const expected = codeFor(visitor, routes[id].access, request.code);
          wrong.push(...faults(id, visitor, request.what, expected, await ask(id, visitor, request)));
        }
      }
      expect(wrong).to.deep.equal([]);
    });
  }

  for (const id of all.filter((each) => operations[each].params !== undefined)) {
    it(`${id}: what belongs to another tenant is as unknown as what is not there, and what cannot be [S4]`, async () => {
      const { id: own, query, body } = good.get(id) as GoodRequest;
      const nobodys = own.replace(/[0-9a-z]{6}$/, "000000");
      const rest = body === null ? {} : { contentType: "application/json", body: JSON.stringify(body) };
      const answers = [];
      for (const name of [own, nobodys, "NONE.SUCH"]) {
        const { status, body: text } = await ask(id, "foreign", {
          target: targetOf(id, name) + queryText(query),
          ...rest,
        });
        const { request_id: _, ...told } = JSON.parse(text) as JsonObject;
        answers.push([status, told]);
      }
      expect(answers[0]?.[0]).to.equal(404);
      expect([answers[1], answers[2]]).to.deep.equal([answers[0], answers[0]]);
    });
  }

  it("and nothing was changed by any of it: on record is who was refused, and nothing else", async () => {
    expect(await tell()).to.equal(state);
    const chains = await world.leave(["acme", "other"]);
    const others = chains.flatMap((records, at) =>
      records.filter(
        ({ seq, kind, detail }) => seq >= (sizes[at] as number) && !(kind === "admin" && isExpected(detail)),
      ),
    );
    expect(others.map(({ kind, detail }) => ({ kind, detail }))).to.deep.equal([]);
    process.stdout.write(
      `    ${asked} requests refused, of ${all.length} operations and ${Object.keys(visitors).length} visitors\n`,
    );
  });
});

/** What the test itself leaves: its own look at the size of the chain, and the refusals. */
function isExpected({ action }: JsonObject): boolean {
  return action === "refused" || action === "audit.verify";
}
