import type { Context } from "koa";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { Json, JsonObject } from "../action/json.ts";
import { modes } from "../action/policy.ts";
import { anonymousKeyId, type Principal } from "../action/principal.ts";
import type { KeyRing } from "../identity/key-ring.ts";
import type { AdminHandlers, Operations } from "../operation/operation.ts";
import { paging, taskName } from "../operation/request.ts";
import { answers, anyText, closed, list, object, oneOf, page, ref, time } from "../operation/shape.ts";
import type { ManifestStore } from "./manifest-store.ts";
import { type Declaration, type DeclarationView, viewOf } from "./plan.ts";
import { readTaskManifest } from "./task-manifest.ts";

type ManifestRouteId = "admin.manifests" | "admin.manifest" | "admin.declare" | "admin.withdraw";

const patterns = list(
  {
    type: "string",
    pattern: "^[^\\p{Cc}\\p{Cs}]{1,256}$",
    description: "1 to 256 characters without control characters",
  },
  { maxItems: 64, description: "a list of at most 64 globs (empty: nothing is expected)" },
);

const members = {
  task: {
    type: "string",
    pattern: "^[a-z0-9][a-z0-9._-]{0,63}$",
    description: "1 to 64 of `a-z 0-9 . _ -`, a letter or digit first",
  },
  principal: { type: "string", pattern: "^[\\x21-\\x7e]{1,128}$", description: "the id of a key or of a principal" },
  session: { type: "string", pattern: "^[\\x21-\\x7e]{1,128}$", description: "1 to 128 visible ASCII characters" },
  expected_tools: patterns,
  expected_resources: patterns,
  write_domains: patterns,
  max_actions: { type: "integer", minimum: 1, maximum: 1_000_000, description: "an integer from 1 to 1000000" },
  expires_at: {
    type: "string",
    pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{3})?Z$",
    description: "a time like `2026-12-31T00:00:00Z`",
  },
  mode: oneOf(modes, { description: "`enforce` or `shadow`" }),
} as const satisfies Readonly<Record<string, JsonObject>>;
const optional = ["session", "mode"];

/** What the answers about manifests are made of. */
export const manifestSchemas: Readonly<Record<string, JsonObject>> = {
  Manifest: object({ tenant: anyText, ...members, digest: anyText, declared_by: anyText, declared_at: time }, optional),
};

const params = { task: taskName };
const refused: readonly ErrorCode[] = ["MANIFEST_CONFLICT", "EVIDENCE_UNAVAILABLE"];

/** What agents were sent to do. */
export const manifestOperations: Operations<ManifestRouteId> = {
  "admin.manifests": {
    name: "listManifests",
    subject: "manifests",
    summary: "The manifests in force, by the name of their task",
    query: paging,
    answer: answers("A page of manifests.", page(ref("Manifest"))),
    refusals: [],
  },
  "admin.manifest": {
    name: "getManifest",
    subject: "manifests",
    summary: "The manifest of one task",
    params,
    answer: answers("The manifest.", ref("Manifest")),
    refusals: [],
  },
  "admin.declare": {
    name: "declareManifest",
    subject: "manifests",
    summary: "Declares what a task is expected to do; what departs from it counts as drift",
    body: {
      schema: closed(members, optional),
      example: {
        task: "nightly-report",
        principal: "reporter",
        expected_tools: ["files/read_*"],
        expected_resources: ["/srv/reports/**"],
        write_domains: [],
        max_actions: 200,
        expires_at: "2027-01-31T00:00:00.000Z",
      },
      required: true,
      limits: { bytes: 65_536, json: { depth: 4, nodes: 512, stringLength: 1_024, reader: "exact" } },
    },
    answer: answers("The manifest in force.", ref("Manifest")),
    refusals: ["NOT_FOUND", ...refused],
  },
  "admin.withdraw": {
    name: "withdrawManifest",
    subject: "manifests",
    summary: "Withdraws a manifest; sessions that are bound to its task stay bound to it",
    params,
    answer: answers("The manifest that was in force.", ref("Manifest")),
    refusals: ["NOT_FOUND", ...refused],
  },
};

export interface ManifestParts {
  readonly manifests: ManifestStore;
  readonly keys: KeyRing;
}

/** A manifest as the admin port tells it. */
export interface ToldManifest extends DeclarationView {
  readonly tenant: string;
}

/** Handlers of task manifests. Every answer is the caller's tenant only. */
export function manifestHandlers(parts: ManifestParts): AdminHandlers<ManifestRouteId> {
  const { manifests } = parts;
  return {
    "admin.manifests": (ctx, { tenant }, { query }) => {
      const { items, next } = manifests.list(tenant, query.limit, query.cursor);
      ctx.body = { items: items.map((each) => told(tenant, each)), next };
    },
    "admin.manifest": (ctx, { tenant }, { id }) => {
      const declared = manifests.find(tenant, id);
      if (declared === undefined) throw new GatewayError("NOT_FOUND", "no such manifest");
      ctx.body = told(tenant, declared);
    },
    "admin.declare": (ctx, caller, { body }) => declare(parts, ctx, caller, body),
    "admin.withdraw": async (ctx, { tenant, id: by }, { id: task }) => {
      ctx.body = told(tenant, await manifests.withdraw(tenant, task, by));
    },
  };
}

async function declare(parts: ManifestParts, ctx: Context, { tenant, id }: Principal, body: Json): Promise<void> {
  const { manifests, keys } = parts;
  // What no schema says: that its day is in the calendar, and how large it is as a whole.
  const manifest = readTaskManifest(body);
  // By the id of its key: that stays when the key itself is replaced, and nobody has two names then.
  const principal = manifest.principal === anonymousKeyId ? anonymousKeyId : keys.keyId(tenant, manifest.principal);
  ctx.state.subject = manifest.principal;
  if (principal === undefined)
    throw new GatewayError("NOT_FOUND", "no such principal: expected `principal` to be that of a key of your tenant");
  ctx.body = told(tenant, await manifests.declare(tenant, { ...manifest, principal }, id));
}

function told(tenant: string, declaration: Declaration): ToldManifest {
  return { tenant, ...viewOf(declaration) };
}
