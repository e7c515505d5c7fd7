import { type GraphQLField, getNamedType, isObjectType } from "graphql";
import { schema } from "../../core/admin/graphql/schema.ts";
import { hourAhead, type Kind, kinds } from "./foreign-world.ts";
import { type AdminRouteId, routes } from "./route-table.ts";

type AnyField = GraphQLField<unknown, unknown>;

/** Where a request to a route may name something. */
interface Takes {
  /** What stands for the parameter of its path. */
  readonly path?: Kind;
  /** What it is sent. */
  readonly body?: (id: string) => object;
  /** What a member of its body may name. */
  readonly members?: readonly Kind[];
  /** It is a list: `?cursor=` may be anything. */
  readonly isList?: true;
}

/** One request, to be made with an id of `acme` and with one of nobody. */
export interface Probe {
  /** A route, or a field of GraphQL. */
  readonly place: string;
  /** Where in it the id stands, and of what kind it is. */
  readonly what: string;
  readonly method: string;
  readonly target: (id: string) => string;
  readonly body?: (id: string) => object;
  readonly id: string;
}

const reason = { reason: "asked to" };
const scoped = (scope: string) => (subject: string) => ({ scope, subject, ...reason });
const described = (session: string): object => ({ tool: "echo", target: "recorder", session });
const list: Takes = { isList: true };
const nothing: Takes = {};

/** The compiler asks for an entry for each route of the admin port. */
const takes: Readonly<Record<AdminRouteId, Takes | readonly Takes[]>> = {
  "admin.health": nothing,
  "admin.metrics": nothing,
  "admin.sessions": list,
  "admin.session": { path: "session" },
  "admin.export": { path: "session" },
  "admin.report": { path: "session" },
  "admin.verify": nothing,
  "admin.evidence_verify": nothing,
  "admin.checkpoint": nothing,
  "admin.keys": nothing,
  "admin.rotate": nothing,
  "admin.prune": nothing,
  "admin.erase": { body: (session) => ({ session, fields: ["*"], ...reason }), members: ["session"] },
  "admin.evidence_jobs": nothing,
  "admin.approvals": list,
  "admin.approval_history": list,
  "admin.approval": { path: "approval" },
  "admin.approve": { path: "approval", body: () => ({}) },
  "admin.deny": { path: "approval", body: () => ({}) },
  "admin.break_glass": nothing,
  "admin.break_glass_close": { path: "glass", body: () => ({ post_mortem: "it was down; two people were told" }) },
  "admin.explain": { path: "decision" },
  "admin.policies": nothing,
  "admin.plugins": nothing,
  "admin.rules": list,
  "admin.test_action": { body: described, members: ["session"] },
  "admin.simulate": { body: (id) => ({ actions: [described(id)] }), members: ["session"] },
  "admin.shadow_decisions": list,
  "admin.graphql": nothing, // each field of its own, below
  "admin.graphql_get": nothing,
  "admin.usage": list,
  "admin.upstreams": nothing,
  "admin.providers": nothing,
  "admin.dead_letters": list,
  "admin.redeliver": { path: "letter" },
  "admin.session_list": list,
  "admin.killed": list,
  "admin.kills": list,
  "admin.kill_scope": [
    { body: (subject) => ({ scope: "session", subject }), members: ["session"] },
    { body: (subject) => ({ scope: "principal", subject }), members: ["principal"] },
  ],
  "admin.release_scope": [
    { body: scoped("session"), members: ["session"] },
    { body: scoped("principal"), members: ["principal"] },
  ],
  "admin.session_state": { path: "session" },
  "admin.session_reset": { path: "session", body: () => reason },
  "admin.kill": { path: "session", body: () => ({}) },
  "admin.release": { path: "session", body: () => reason },
  "admin.tickets": list,
  "admin.ticket_issue": {
    body: (principal) => ({ principal, tools: ["echo"], targets: ["*"], capabilities: ["execute"] }),
    members: ["principal"],
  },
  "admin.ticket_keys": nothing,
  "admin.ticket_revoke": { path: "ticket", body: () => reason },
  "admin.backup": nothing,
  "admin.backups": nothing, // nobody's but one tenant's, below
  "admin.definitions": list,
  "admin.definition": { path: "definition" },
  "admin.definition_deny": { path: "definition", body: () => ({}) },
  "admin.definition_approve": { path: "definition", body: () => ({}) }, // what was denied may be approved
  "admin.manifests": list,
  "admin.manifest": { path: "task" },
  "admin.declare": [
    { body: (principal) => declared({ principal }), members: ["principal", "key"] },
    { body: (task) => declared({ task, principal: "foreign", session: task }), members: ["task"] },
  ],
  "admin.withdraw": { path: "task" },
  "admin.openapi": nothing,
};
/** Every way that there is, route by route. */
export const ways: readonly (readonly [AdminRouteId, Takes])[] = Object.entries(takes).flatMap(([id, each]) =>
  [each].flat().map((taken) => [id as AdminRouteId, taken] as const),
);

function declared(over: object): object {
  const wide = { expected_tools: ["*"], expected_resources: ["*"], write_domains: ["*"], max_actions: 1 };
  return { task: "mine", ...wide, expires_at: hourAhead(), ...over };
}

/** Every way to name something of `acme` on the admin port; the paths first, before a body makes something of that name. */
export function probesFor(ids: Readonly<Record<Kind, string>>): readonly Probe[] {
  const ordered = [
    ...ways.filter(([, { path }]) => path !== undefined),
    ...ways.filter(([, { path }]) => path === undefined),
  ];
  return ordered.flatMap(([route, { path, body, members = [], isList }]): readonly Probe[] => {
    const { method, path: shape } = routes[route];
    const sent = body === undefined ? {} : { body };
    const probe = (kind: Kind, what: string, target: (id: string) => string): Probe => {
      return { place: route, what: `${what} ${kind}`, method, target, id: ids[kind], ...sent };
    };
    return [
      ...(path === undefined ? [] : [probe(path, "path", (id) => shape.replace(/:\w+/, id))]),
      ...members.map((kind) => probe(kind, "body", () => shape)),
      ...(isList ? kinds.map((kind) => probe(kind, "cursor", (id) => `${shape}?cursor=${id}`)) : []),
    ];
  });
}

/** Every argument of GraphQL that may name something, asked by a tenant that has the session `own`. */
export function questionsFor(ids: Readonly<Record<Kind, string>>, own: string): readonly Probe[] {
  const fields = Object.values(schema.getQueryType()?.getFields() ?? {});
  return fields.flatMap((field) =>
    field.args
      .filter(({ name }) => !usual.includes(name))
      .flatMap(({ name }) => {
        const among = name === "cursor" ? kinds : ([field.name === "approval" ? "approval" : "session"] as const);
        return among.map((kind) => question(field, name, kind, ids[kind], own));
      }),
  );
}

/** Arguments that name nothing. */
const usual: readonly string[] = ["limit", "state", "sort", "from", "to", "by"];

function question(field: AnyField, name: string, kind: Kind, id: string, own: string): Probe {
  const needed: Readonly<Record<string, string>> = {
    usage: 'from: "2026-01-01", to: "2026-01-02", ',
    records: name === "session" ? "" : `session: "${own}", `,
  };
  const { method, path } = routes["admin.graphql"];
  const ask = (named: string): string =>
    `{ ${field.name}(${needed[field.name] ?? ""}${name}: "${named}") ${selectionOf(field)} }`;
  const body = (named: string): object => ({ query: ask(named) });
  return { place: field.name, what: `${name} ${kind}`, method, target: () => path, body, id };
}

/** All there is to ask below a field, three levels deep. */
function selectionOf({ type }: Pick<AnyField, "type">, depth = 3): string {
  const named = getNamedType(type);
  if (!isObjectType(named)) return "";
  const below = Object.values(named.getFields()).filter(
    (field) => depth > 1 || !isObjectType(getNamedType(field.type)),
  );
  return `{ ${below.map((field) => `${field.name} ${selectionOf(field, depth - 1)}`).join(" ")} }`;
}
