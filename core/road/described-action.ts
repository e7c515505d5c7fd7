import type { IncomingMessage } from "node:http";
import { Ajv } from "ajv";
import {
  type ActionEnvelope,
  type Capability,
  capabilities,
  type Phase,
  type Protocol,
  phases,
  protocols,
  withOutput,
} from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { httpSession, type Principal, type SessionScope } from "../action/principal.ts";
import { singleHeader } from "../identity/header.ts";
import type { TaskBinding } from "../manifest/task-binding.ts";
import { faultOf } from "../operation/fault.ts";
import { ActionFactory, type Actor, type TaskSource, UntrustedSources } from "./action-factory.ts";

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

/** The member of `_meta` that carries a reference, beside the header `X-Gateway-Task`. It goes no further. */
const taskMetaKey = "io.agent-governance-gateway/task";

/**
 * Binds a session to the task that a request refers to, if it does; `params` are those of an MCP request. Rejects as
 * `TaskBinding.bind` does, and with TASK_REFERENCE for two references that differ.
 */
export async function bindTask(
  tasks: TaskBinding,
  { rawHeaders }: IncomingMessage,
  principal: Principal,
  scope: SessionScope,
  params?: JsonObject,
): Promise<void> {
  const inHeader = singleHeader(rawHeaders, "x-gateway-task");
  const inMeta = metaReference(params?._meta);
  if (inHeader !== undefined && inMeta !== undefined && inHeader !== inMeta) {
    throw new GatewayError("TASK_REFERENCE", `expected the header and \`${taskMetaKey}\` to say the same`);
  }
  const token = inHeader ?? inMeta;
  if (token !== undefined) await tasks.bind(principal, scope, token);
}

function metaReference(meta: Json | undefined): string | undefined {
  const value = isJsonObject(meta) && Object.hasOwn(meta, taskMetaKey) ? meta[taskMetaKey] : undefined;
  if (value === undefined || typeof value === "string") return value;
  throw new GatewayError("TASK_REFERENCE", `expected \`${taskMetaKey}\` to be a string`);
}
