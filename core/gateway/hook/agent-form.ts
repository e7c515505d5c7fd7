import type { FactStatement } from "../../action/action-fact.ts";
import type { Capability } from "../../action/capability.ts";
import { type Decision, isDecision } from "../../action/decision.ts";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { DirectAction } from "./direct-action.ts";

/** A tool call that an agent's hook asks about. */
export interface HookCall {
  readonly action: DirectAction;
  /** The agent's own name for its session: a label, never trusted beyond one. */
  readonly session: string | undefined;
}

/** The answer to a hook. */
export interface HookVerdict {
  readonly decision: Decision;
  readonly reason: string;
  /** Absent where no approval is pending or used up. */
  readonly approval?: JsonObject;
}

/** The effect of an answer at the agent. */
export type HookEffect = "allow" | "ask" | "deny";

/** The gateway that a hook asks, for the settings of an agent. */
export interface HookPlace {
  readonly url: string;
  readonly waitSeconds: number;
}

/** The contract of one agent's pre-tool hook. */
export interface AgentForm {
  /** Reads the payload of a hook. Throws INVALID_PARAMS that says what was expected. */
  readonly read: (payload: Json) => HookCall;
  readonly answer: (verdict: HookVerdict) => JsonObject;
  /** Returns the effect that an answer has at the agent; undefined where the agent could not be sure of it. */
  readonly effectOf: (answer: JsonObject) => HookEffect | undefined;
  /** The exit code of a hook that prints such an answer. */
  readonly exitCodes: Readonly<Record<HookEffect, number>>;
  /** The agent's settings with a hook that runs `gateway hook`. */
  readonly settings: (place: HookPlace) => JsonObject;
  /** The settings with a hook that posts by itself; absent where the agent has none. */
  readonly httpSettings?: (place: HookPlace) => JsonObject;
  /** The places of paths in the arguments of the agent's own tools, by the name of the tool. */
  readonly facts: Readonly<Record<string, FactStatement>>;
  /** The agent's own tools as it offers them to a model. */
  readonly offered: OfferedTools;
}

/** Tools by their names in requests. Without a capability one of `facts` is `execute`. */
export interface OfferedTools {
  readonly capabilities: Readonly<Record<string, Capability>>;
  /** No place that a call may leave out: what is not there is unknown. */
  readonly facts: Readonly<Record<string, FactStatement>>;
}

/** The header of an answer that names its decision: without it, no answer is one of the gateway. */
export const decisionHeader = "x-gateway-decision";
/** The header of an answer that names the error because of which the tool may not run. */
export const errorHeader = "x-gateway-error";

/** The longest answer to a hook, in bytes. */
export const maxHookAnswerBytes = 65_536;

/**
 * Reads an answer to a hook as it came. Throws UPSTREAM_INVALID unless body and header say the same in the agent's own form:
 * whatever is not certainly an answer of the gateway permits nothing.
 */
export function readHookAnswer(form: AgentForm, decision: string | null, body: Uint8Array): [JsonObject, HookEffect] {
  const answer = parseAnswer(body);
  const effect = answer === undefined ? undefined : form.effectOf(answer);
  const expected = isDecision(decision)
    ? form.effectOf(form.answer({ decision, reason: "of the gateway" }))
    : undefined;
  if (answer !== undefined && effect !== undefined && effect === expected) return [answer, effect];
  throw new GatewayError("UPSTREAM_INVALID", "expected the gateway's answer to a hook; check `--url`");
}

function parseAnswer(body: Uint8Array): JsonObject | undefined {
  try {
    const value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as Json;
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
