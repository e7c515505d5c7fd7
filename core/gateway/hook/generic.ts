import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json } from "../../action/json.ts";
import type { AgentForm, HookCall, HookEffect } from "./agent-form.ts";
import { readDirectAction } from "./direct-action.ts";
import { readLabel } from "./tool-payload.ts";

const agent = "generic";

const effectByDecision = { allow: "allow", review: "ask", block: "deny" } as const;
const effects: readonly HookEffect[] = ["allow", "ask", "deny"];

/** The contract for agents without one that we know: an action in the gateway's own terms. */
export const genericForm: AgentForm = {
  read: readGeneric,
  answer: ({ decision, reason, approval }) => ({
    decision: effectByDecision[decision],
    reason,
    ...(approval === undefined ? {} : { approval }),
  }),
  effectOf: ({ decision, reason }) =>
    typeof reason === "string" ? effects.find((effect) => effect === decision) : undefined,
  exitCodes: { allow: 0, deny: 2, ask: 3 },
  settings: ({ url, waitSeconds }) => ({
    command: ["gateway", "hook", agent, "--url", url, "--wait", String(waitSeconds)],
    stdin: { protocol: "shell", tool: "sh", arguments: { command: "make test" }, session_id: "nightly" },
    exit_codes: { allow: 0, deny: 2, ask: 3 },
  }),
  facts: {},
  offered: { capabilities: {}, facts: {} },
};

function readGeneric(body: Json): HookCall {
  if (!isJsonObject(body)) throw new GatewayError("INVALID_PARAMS", "expected the payload of the hook to be an object");
  const { session_id: session, target = agent, ...action } = body;
  return {
    action: readDirectAction({ ...action, target }),
    session: session === undefined ? undefined : readLabel(session),
  };
}
