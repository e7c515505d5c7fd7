import type { ActionEnvelope } from "../../core/action/envelope.ts";
import { makeAction } from "./action.ts";

/** A schema that declares calls of two kinds, with some of their arguments. */
export const cedarSchema = `
type Arguments = { title?: String, text?: String, count?: Long, price?: decimal, tags?: Set<String> };
type State = { risk: Long, taints: Set<{ name: String }> };
entity Tenant;
entity Role;
entity Target;
entity Group;
entity Agent in [Tenant, Role] = { role: String, key_id: String };
entity Tool in [Target, Group] = { name: String, sensitivity?: String };
action change;
action "read", "list" appliesTo { principal: Agent, resource: Tool, context: { protocol: String } };
action "write", "delete" in [change] appliesTo {
  principal: Agent,
  resource: Tool,
  context: { arguments: Arguments, session_state?: State },
};
`;

/** Policies that permit, ask, forbid, and fail on a count whose product is too large. */
export const cedarPolicies = `// Notes.
@id("read")
permit(principal, action in [Action::"read", Action::"list"], resource);

@id("write")
permit(principal in Role::"operator", action == Action::"write", resource in Target::"local");

@id("delete-asks") @decision("review") @reason("deleting needs a person") @approvals("2")
permit(principal, action == Action::"delete", resource);

@id("no-secret") @reason("secrets stay here") @severity("critical") @risk("95")
forbid(principal, action in Action::"change", resource)
when { context.arguments has text && context.arguments.text like "*secret*" };

@id("counts")
forbid(principal, action == Action::"write", resource)
when { context.arguments has count && context.arguments.count * 4611686018427387904 == 0 && context.arguments.count != 0 };
`;

/** A folder of Cedar policies by path, some of it otherwise. */
export function cedarFiles(changed: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return {
    "engine.yaml": `apiVersion: gateway/v1
kind: PolicyEngine
engine: cedar
metadata: { name: notes, version: 1.0.0, title: Notes in Cedar }
`,
    "schema.cedarschema": cedarSchema,
    "policies.cedar": cedarPolicies,
    ...changed,
  };
}

/** An operator's call of a tool of `local`. */
export function noteCall(args: ActionEnvelope["arguments"], changed: Partial<ActionEnvelope> = {}): ActionEnvelope {
  return makeAction({ tool: "write_note", target: "local", capability: "write", arguments: args, ...changed });
}
