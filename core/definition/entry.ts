import { canonicalJson, contentDigest } from "../action/canonical-json.ts";
import type { DefinitionFinding } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { rangeOf, tenantPrefix } from "../store/key-range.ts";

/** A tool of an upstream, by the upstream's own name for it. */
export interface ToolPlace {
  readonly upstream: string;
  readonly tool: string;
}

/** A definition that the agents of a tenant may be shown. */
export interface Pin extends ToolPlace {
  /** The name that clients call. */
  readonly exposed_name: string;
  /** `sha256:<hex>` over the RFC 8785 bytes of the definition. */
  readonly digest: string;
  /** The principal whose request met it first, or who approved it. */
  readonly pinned_by: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly pinned_at: string;
  /** Present where its upstream replaced the tool by another one that was approved: then it is missed no more. */
  readonly retired?: true;
  /** As the upstream publishes it. */
  readonly definition: JsonObject;
}

/** One reason to withhold a definition, in words for a reviewer. */
export interface WithholdReason {
  readonly finding: DefinitionFinding;
  readonly text: string;
}

export const reviewStates = ["pending", "denied"] as const;

/** The review of a withheld definition. */
export interface DefinitionReview extends ToolPlace {
  readonly id: string;
  readonly state: (typeof reviewStates)[number];
  readonly exposed_name: string;
  readonly digest: string;
  readonly reasons: readonly WithholdReason[];
  /** The pinned definition that it would replace, or whose name it claims; null where there is none. */
  readonly compared_with: ToolPlace | null;
  /** Pinned tools of the upstream that it no longer lists, at most 100; approving a renamed tool retires them. */
  readonly replaces: readonly string[];
  /** The principal whose request met it first. */
  readonly seen_by: string;
  readonly seen_key_id: string;
  readonly seen_at: string;
  readonly reviewer?: string;
  readonly reviewed_at?: string;
  readonly comment?: string;
  /** Other digests of the same tool that were denied, the last 16. */
  readonly denied: readonly string[];
  readonly definition: JsonObject;
}

/** An entry without its definition: what is kept in memory. */
export type PinHead = Omit<Pin, "definition"> & { readonly characters: number; readonly traits: readonly string[] };
export type ReviewHead = Omit<DefinitionReview, "definition">;

export function pinHead({ definition, ...head }: Pin): PinHead {
  return { ...head, characters: JSON.stringify(definition).length, traits: definitionTraits(definition) };
}

/** Digests of the parts by which a tool is known again under another name: its description, and what it takes. */
export function definitionTraits({ description, inputSchema }: JsonObject): readonly string[] {
  const properties = isJsonObject(inputSchema) ? inputSchema.properties : undefined;
  const parts: Json[] = [];
  if (typeof description === "string" && description !== "") parts.push(["description", description]);
  if (isJsonObject(properties) && Object.keys(properties).length > 0) parts.push(["properties", properties]);
  return parts.map((part) => contentDigest(canonicalJson(part)));
}

export function reviewHead({ definition: _, ...head }: DefinitionReview): ReviewHead {
  return head;
}

/** Computes the id of a review: of one definition of one tool, for one tenant. */
export function reviewId(tenant: string, { upstream, tool }: ToolPlace, digest: string): string {
  const hash = contentDigest(canonicalJson(["definition-v1", tenant, upstream, tool, digest]));
  return `def_${hash.slice("sha256:".length, "sha256:".length + 32)}`;
}

type EntryKind = "pin" | "review";

export function entryRange(tenant: string, kind: EntryKind): ReturnType<typeof rangeOf> {
  return rangeOf(`${tenantPrefix(tenant)}definition/${kind}/`);
}

/** A tool has at most one pin and one review. */
export function entryKey(tenant: string, kind: EntryKind, { upstream, tool }: ToolPlace): string {
  return `${entryRange(tenant, kind).gte}${encodeURIComponent(upstream)}/${encodeURIComponent(tool)}`;
}

/** Parses an entry. Throws STATE_UNUSABLE for a damaged one: what its agents were shown is unknown then. */
export function readDefinition<Entry extends Pin | DefinitionReview>(key: string, text: string): Entry {
  const entry = parse(text);
  if (isJsonObject(entry) && isJsonObject(entry.definition)) {
    const { upstream, tool, digest, definition } = entry;
    const isPlaced = key.endsWith(`/${encodeURIComponent(String(upstream))}/${encodeURIComponent(String(tool))}`);
    if (isPlaced && digest === contentDigest(canonicalJson(definition))) return entry as unknown as Entry;
  }
  throw new GatewayError("STATE_UNUSABLE", `the entry \`${key}\` of a tool's definition is damaged`);
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}
