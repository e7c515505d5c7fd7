import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";

/** A flag, or an object with these members and no others. */
type Shape = "flag" | { readonly [member: string]: Shape };

/** The capabilities of clients that upstreams learn of; what upstreams then ask of a client is judged. */
const relayed: Shape = {
  roots: { listChanged: "flag" },
  sampling: { context: {}, tools: {} },
  elicitation: { form: { applyDefaults: "flag" }, url: {} },
};

/** Returns a client's capabilities as upstreams are told of them: written anew from a closed list, so that they hold no text. */
export function relayedCapabilities(capabilities: JsonObject): JsonObject {
  return (rebuild(capabilities, relayed) ?? {}) as JsonObject;
}

function rebuild(value: Json | undefined, shape: Shape): Json | undefined {
  if (shape === "flag") return typeof value === "boolean" ? value : undefined;
  if (!isJsonObject(value)) return undefined;
  const kept: Record<string, Json> = {};
  for (const [name, member] of Object.entries(shape)) {
    const built = Object.hasOwn(value, name) ? rebuild(value[name], member) : undefined;
    if (built !== undefined) kept[name] = built;
  }
  return kept;
}
