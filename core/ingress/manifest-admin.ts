import type { Context } from "koa";
import type { KeyRing } from "../identity/key-ring.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Json } from "../kernel/json.ts";
import { anonymousKeyId, type Principal } from "../kernel/principal.ts";
import { readTaskManifest } from "../kernel/task-manifest.ts";
import { type Declaration, type DeclarationView, viewOf } from "../manifest/declaration.ts";
import type { ManifestBook } from "../manifest/manifest-book.ts";
import type { AdminHandlers } from "./api/handler.ts";
import type { ManifestRouteId } from "./api/manifest.ts";

export interface ManifestParts {
  readonly manifests: ManifestBook;
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
