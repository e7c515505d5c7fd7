import type { Context } from "koa";
import type { KeyRing } from "../identity/key-ring.ts";
import { GatewayError } from "../kernel/error.ts";
import { anonymousKeyId, type Principal } from "../kernel/principal.ts";
import { readTaskManifest } from "../kernel/task-manifest.ts";
import { type Declaration, type DeclarationView, viewOf } from "../manifest/declaration.ts";
import type { ManifestBook } from "../manifest/manifest-book.ts";
import type { Handlers } from "./app.ts";
import { type BodyLimits, readJsonBody } from "./body.ts";
import { readPage } from "./page.ts";

export interface ManifestParts {
  readonly manifests: ManifestBook;
  readonly keys: KeyRing;
}

/** A manifest as the admin port tells it. */
export interface ToldManifest extends DeclarationView {
  readonly tenant: string;
}

type ManifestRouteId = "admin.manifests" | "admin.manifest" | "admin.declare" | "admin.withdraw";

const limits: BodyLimits = { bytes: 65_536, json: { depth: 4, nodes: 512, stringLength: 1_024, reader: "exact" } };

/** Handlers of task manifests. Every answer is the caller's tenant only. */
export function manifestHandlers(parts: ManifestParts): Pick<Handlers, ManifestRouteId> {
  const { manifests } = parts;
  return {
    "admin.manifests": (ctx, { tenant }) => {
      const { limit, cursor } = readPage(ctx);
      const { items, next } = manifests.list(tenant, limit, cursor);
      ctx.body = { items: items.map((each) => told(tenant, each)), next };
    },
    "admin.manifest": (ctx, { tenant }) => {
      const declared = manifests.find(tenant, ctx.params.task as string);
      if (declared === undefined) throw new GatewayError("NOT_FOUND", "no such manifest");
      ctx.body = told(tenant, declared);
    },
    "admin.declare": (ctx, caller) => declare(parts, ctx, caller),
    "admin.withdraw": async (ctx, { tenant, id }) => {
      ctx.body = told(tenant, await manifests.withdraw(tenant, ctx.params.task as string, id));
    },
  };
}

async function declare({ manifests, keys }: ManifestParts, ctx: Context, { tenant, id }: Principal): Promise<void> {
  const manifest = readTaskManifest(await readJsonBody(ctx.req, limits));
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
