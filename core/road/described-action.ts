import type { Static } from "@sinclair/typebox";
import { capabilities } from "../action/capability.ts";
import { type ActionEnvelope, phases, protocols, withOutput } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { Json, JsonObject } from "../action/json.ts";
import { type Principal, sessionScope } from "../action/principal.ts";
import { Type } from "../config/type.ts";
import { closed, enumOf, matching } from "../operation/shape.ts";
import { ActionFactory, type Actor, type TaskSource, UntrustedSources } from "./action-factory.ts";

const name = Type.String({ minLength: 1, maxLength: 512 });

/** An action described by somebody who asks what policy would decide. */
export const describedAction = closed({
  protocol: Type.Optional(enumOf(protocols)),
  phase: Type.Optional(enumOf(phases)),
  tool: name,
  target: name,
  /** Default `execute`, as for a tool without a declared capability. */
  capability: Type.Optional(enumOf(capabilities)),
  arguments: Type.Optional(Type.Unsafe<JsonObject>({ type: "object" })),
  output: Type.Optional(Type.Unsafe<Json>({})),
  /** A session's label; absent: the caller's default session. */
  session: Type.Optional(matching("^[\\x21-\\x7e]{1,128}$", "1 to 128 visible ASCII characters")),
});

export type DescribedAction = Static<typeof describedAction>;

/** Sources of the members of an action that its description does not contain. */
export interface DescriptionParts {
  readonly clock: Clock;
  readonly newId: () => string;
  readonly taskBinding: TaskSource;
}

/** Throws INVALID_PARAMS unless `output` is there in phase `output`, and only there. `where` names the description. */
export function checkOutput({ phase, output }: DescribedAction, where: string): void {
  if (phase === "output" && output === undefined)
    throw new GatewayError("INVALID_PARAMS", `\`${where}\` must have \`output\` in phase \`output\``);
  if (phase !== "output" && output !== undefined)
    throw new GatewayError("INVALID_PARAMS", `\`${where}\` must have \`output\` in phase \`output\` only`);
}

/** Returns the action as if `caller` attempted it. */
export function actionOf(
  described: DescribedAction,
  caller: Principal,
  client: Actor["client"],
  { clock, newId, taskBinding }: DescriptionParts,
): ActionEnvelope {
  const scope = sessionScope("http", caller.tenant, caller.id, described.session);
  const { protocol = "mcp", phase = "input", tool, target, capability = "execute", output = null } = described;
  const attempt = { tool, target, capability, arguments: described.arguments ?? {} };
  const sources = { untrusted: new UntrustedSources([]), tasks: taskBinding };
  const factory = new ActionFactory(protocol, clock, newId, sources);
  const action = factory.make({ principal: caller, scope, client }, attempt, phase === "list" ? "list" : "input");
  return phase === "output" ? withOutput(action, output) : action;
}
