import type { JsonObject } from "../../kernel/json.ts";
import type { ModelApi } from "../../kernel/model-api.ts";

const owner = "agent-governance-gateway";

/** The models that clients may ask for, as the API lists them: all on one page. When they were made is not known. */
export function modelList(api: ModelApi, models: readonly string[]): JsonObject {
  if (api === "chat") {
    return { object: "list", data: models.map((id) => ({ id, object: "model", created: 0, owned_by: owner })) };
  }
  return {
    data: models.map((id) => ({ type: "model", id, display_name: id, created_at: "1970-01-01T00:00:00Z" })),
    has_more: false,
    first_id: models[0] ?? null,
    last_id: models.at(-1) ?? null,
  };
}
