import type { ActionEnvelope } from "../action/envelope.ts";
import type { Json, JsonObject } from "../action/json.ts";

/**
 * The action as policies of other engines see it: the members of the envelope, with the names that packs use. Members that
 * the action lacks are absent. The history of the session is left out, as for plugins.
 */
export function inputOf(action: ActionEnvelope): JsonObject {
  const { principal, history: _, ...rest } = action;
  const members = { ...rest, principal: { id: principal.id, role: principal.role, key_id: principal.keyId } };
  return members as unknown as Readonly<Record<string, Json>>;
}
