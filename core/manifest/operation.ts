import type { TObject } from "@sinclair/typebox";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { Json } from "../action/json.ts";
import { anonymousKeyId } from "../action/principal.ts";
import { Type } from "../config/type.ts";
import type { KeyRing } from "../identity/key-ring.ts";
import type { AdminHandlers, AdminOperations } from "../operation/operation.ts";
import { anyText, closed, jsonResponse, page, paging, ref, taskParameter, time } from "../operation/shape.ts";
import type { ManifestStore } from "./manifest-store.ts";
import { type Declaration, type DeclarationView, viewOf } from "./plan.ts";
import { manifestMembers, readTaskManifest } from "./task-manifest.ts";

/** Components of the document. */
export const manifestSchemas: Readonly<Record<string, TObject>> = {
  Manifest: Type.Object({
    tenant: anyText,
    ...manifestMembers,
    digest: anyText,
    declared_by: anyText,
    declared_at: time,
  }),
};

const params = { task: taskParameter };
const changeErrors: readonly ErrorCode[] = ["NOT_FOUND", "MANIFEST_CONFLICT", "EVIDENCE_UNAVAILABLE"];

/** Task manifests. */
export const manifestOperations = {
  listManifests: {
    id: "admin.manifests",
    method: "GET",
    path: "/admin/v1/manifests",
    access: "manifest.read",
    tag: "manifests",
    summary: "List the manifests in force, by task name",
    query: closed(paging),
    response: jsonResponse("A page of manifests.", page(ref("Manifest"))),
    errors: [],
  },
  getManifest: {
    id: "admin.manifest",
    method: "GET",
    path: "/admin/v1/manifests/:task",
    access: "manifest.read",
    tag: "manifests",
    summary: "Get the manifest of one task",
    params,
    response: jsonResponse("The manifest.", ref("Manifest")),
    errors: [],
  },
  declareManifest: {
    id: "admin.declare",
    method: "POST",
    path: "/admin/v1/manifests",
    access: "manifest.write",
    tag: "manifests",
    summary: "Declare what a task is expected to do; departures from it count as drift",
    body: {
      schema: closed(manifestMembers),
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
      limits: { bytes: 65_536, json: { depth: 6, nodes: 2_048, stringLength: 1_024, reader: "exact" } },
    },
    response: jsonResponse("The manifest in force.", ref("Manifest")),
    errors: changeErrors,
    subjectMember: "principal",
  },
  withdrawManifest: {
    id: "admin.withdraw",
    method: "DELETE",
    path: "/admin/v1/manifests/:task",
    access: "manifest.write",
    tag: "manifests",
    summary: "Withdraw a manifest; sessions bound to its task stay bound",
    params,
    response: jsonResponse("The manifest that was in force.", ref("Manifest")),
    errors: changeErrors,
  },
} as const satisfies AdminOperations;

interface ManifestSources {
  readonly manifests: ManifestStore;
  readonly keys: KeyRing;
}

/** A manifest as the admin port returns it. */
export interface ManifestView extends DeclarationView {
  readonly tenant: string;
}

/** Handlers of task manifests. Responses are of the caller's tenant only. */
export function manifestHandlers({ manifests, keys }: ManifestSources): AdminHandlers<typeof manifestOperations> {
  return {
    listManifests: ({ tenant }, { query }) => {
      const { items, next } = manifests.list(tenant, query.limit, query.cursor);
      return { items: items.map((each) => viewManifest(tenant, each)), next };
    },
    getManifest: ({ tenant }, { id: task }) => {
      const declared = manifests.find(tenant, task);
      if (declared === undefined) throw new GatewayError("NOT_FOUND", "no such manifest");
      return viewManifest(tenant, declared);
    },
    declareManifest: async ({ tenant, id: by }, { body }) => {
      // Beyond the schema: the day exists, and the whole has a bound.
      const manifest = readTaskManifest(body as Json);
      const principal = keyIdOf(keys, tenant, manifest.principal);
      return viewManifest(tenant, await manifests.declare(tenant, { ...manifest, principal }, by));
    },
    withdrawManifest: async ({ tenant, id: by }, { id: task }) =>
      viewManifest(tenant, await manifests.withdraw(tenant, task, by)),
  };
}

/** The id of a principal's key: it stays when the key itself is replaced, and nobody has two names then. */
function keyIdOf(keys: KeyRing, tenant: string, principal: string): string {
  const id = principal === anonymousKeyId ? anonymousKeyId : keys.keyId(tenant, principal);
  if (id !== undefined) return id;
  throw new GatewayError("NOT_FOUND", "no such principal: expected `principal` to be that of a key of your tenant");
}

function viewManifest(tenant: string, declaration: Declaration): ManifestView {
  return { tenant, ...viewOf(declaration) };
}
