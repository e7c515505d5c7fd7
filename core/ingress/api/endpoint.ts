import { buildDocument } from "./document.ts";
import type { AdminHandlers } from "./handler.ts";

/** The handler that tells what the admin port can be asked. The document is made when somebody wants it first. */
export function documentHandlers(version: () => string): AdminHandlers<"admin.openapi"> {
  let text: string | undefined;
  return {
    "admin.openapi": (ctx) => {
      text ??= JSON.stringify(buildDocument(version()));
      ctx.type = "application/json; charset=utf-8";
      ctx.body = text;
    },
  };
}
