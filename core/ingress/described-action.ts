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
    session: { type: "string", minLength: 1, maxLength: 128, pattern: "^[\\x21-\\x7e]+$" },
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

const isDescribed = new Ajv({ strict: true, logger: false }).compile<DescribedAction>(describedActionSchema);

/** Throws INVALID_PARAMS that names the place, below `where`, and what was expected there. */
export function readDescribedAction(value: Json, where: string): DescribedAction {
  if (!isDescribed(value)) {
    const [fault] = isDescribed.errors ?? [];
    const { additionalProperty: extra, allowedValues: words } = fault?.params ?? {};
    const expected = Array.isArray(words) ? `be one of ${words.join(", ")}` : (fault?.message ?? "be an action");
    const got = typeof extra === "string" ? `, got \`${extra.slice(0, 64)}\`` : "";
    throw new GatewayError(
      "INVALID_PARAMS",
      `\`${where}${fault?.instancePath ?? ""}\` must ${expected.replace(/^must /, "")}${got}`,
    );
  }
  if (value.phase === "output" && value.output === undefined)
    throw new GatewayError("INVALID_PARAMS", `\`${where}\` must have \`output\` in phase \`output\``);
  if (value.phase !== "output" && value.output !== undefined)
    throw new GatewayError("INVALID_PARAMS", `\`${where}\` must have \`output\` in phase \`output\` only`);
  return value;
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
