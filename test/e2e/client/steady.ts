import { isJsonObject, type Json } from "../../../core/action/json.ts";
import type { ClientKind } from "../../support/mcp-client.ts";

/** The same value without what differs from one second, and from one session, to the next. */
export function steady(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(steady);
  if (typeof value === "string") return steadyText(value);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, steadyMember(key, member)]));
}

/** A tool list as the client reads it: with the stateless revision, SDK 2 drops what that revision does not know. */
export function asReadBy(kind: ClientKind, tools: readonly object[]): readonly object[] {
  return kind === "v2 modern" ? tools.map((tool) => ({ ...tool, execution: undefined })).map(withoutUndefined) : tools;
}

function steadyMember(key: string, member: Json): unknown {
  if (key === "blob" && typeof member === "string") return steadyText(Buffer.from(member, "base64").toString("latin1"));
  return steady(member);
}

function steadyText(text: string): string {
  return text
    .replace(/created at \d+:\d\d:\d\d.[AP]M/g, "created at (time)")
    .replace(/session [0-9a-f]{8}-[0-9a-f-]{27}/g, "session (id)");
}

function withoutUndefined(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
}
