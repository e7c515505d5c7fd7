import { Ajv } from "ajv";
import type { Capability } from "../kernel/capability.ts";
import { capabilities } from "../kernel/capability.ts";
import { type ActionEnvelope, type Phase, type Protocol, phases, protocols, withOutput } from "../kernel/envelope.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Json, JsonObject } from "../kernel/json.ts";
import type { Clock } from "../kernel/port.ts";
import type { Principal } from "../kernel/principal.ts";
import { httpSession } from "../kernel/session-scope.ts";
import { ActionFactory, type Actor, type TaskSource } from "./action-factory.ts";
import { faultOf } from "./api/fault.ts";
import { UntrustedSources } from "./untrusted-source.ts";

const name: JsonObject = { type: "string", minLength: 1, maxLength: 512 };

/** An action as somebody describes it who wants to know what policy would say of it. JSON Schema. */
export const describedActionSchema: JsonObject = {
  type: "object",
  additionalProperties: false,
  required: ["tool", "target"],
  properties: {
    protocol: { enum: protocols },
    phase: { enum: phases },
    tool: name,
    target: name,
    capability: { enum: capabilities },
    arguments: { type: "object" },
    output: true,
    session: { type: "string", pattern: "^[\\x21-\\x7e]{1,128}$", description: "1 to 128 visible ASCII characters" },
  },
};

/** What such a description says. */
export interface DescribedAction {
  readonly protocol?: Protocol;
  readonly phase?: Phase;
  readonly tool: string;
  readonly target: string;
  /** `execute` where it is left out, as for a tool nobody spoke for. */
  readonly capability?: Capability;
  readonly arguments?: JsonObject;
  readonly output?: Json;
  /** A session's label; left out, the caller's default session. */
  readonly session?: string;
}

/** What an action needs beside its description. */
export interface DescriptionParts {
  readonly clock: Clock;
  readonly newId: () => string;
  readonly taskBinding: TaskSource;
}

const isDescribed = new Ajv({ strict: true, verbose: true, logger: false }).compile<DescribedAction>(
  describedActionSchema,
);

/** Throws INVALID_PARAMS that names the place, below `where`, and what was expected there. */
export function readDescribedAction(value: Json, where: string): DescribedAction {
  if (!isDescribed(value)) throw faultOf(where, isDescribed.errors?.[0]);
  checkOutput(value, where);
  return value;
}

/** Throws INVALID_PARAMS for a description whose answer does not go with its phase. */
export function checkOutput({ phase, output }: DescribedAction, where: string): void {
  if (phase === "output" && output === undefined)
    throw new GatewayError("INVALID_PARAMS", `\`${where}\` must have \`output\` in phase \`output\``);
  if (phase !== "output" && output !== undefined)
    throw new GatewayError("INVALID_PARAMS", `\`${where}\` must have \`output\` in phase \`output\` only`);
}

/** The action as it would be if `caller` attempted it. */
export function actionOf(
  said: DescribedAction,
  caller: Principal,
  client: Actor["client"],
  { clock, newId, taskBinding }: DescriptionParts,
): ActionEnvelope {
  const scope = httpSession(caller.tenant, caller.id, said.session);
  const { protocol = "mcp", phase = "input", tool, target, capability = "execute", output = null } = said;
  const attempt = { tool, target, capability, arguments: said.arguments ?? {} };
  const sources = { untrusted: new UntrustedSources([]), tasks: taskBinding };
  const factory = new ActionFactory(protocol, clock, newId, sources);
  const action = factory.make({ principal: caller, scope, client }, attempt, phase === "list" ? "list" : "input");
  return phase === "output" ? withOutput(action, output) : action;
}
