import type { ActionEnvelope } from "../../action/envelope.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { defaultSeverity, type Verdict } from "../../action/policy.ts";
import { EntityGraph } from "../cedar/entity-graph.ts";
import { actionName, readRequest } from "../cedar/request.ts";
import type { CedarSchema } from "../cedar/schema.ts";
import { EngineError } from "../engine-fault.ts";
import { type EngineReason, notPermitted, reasonIdPattern, verdictOf } from "../engine-reason.ts";
import type { EngineSource, NamedPolicy } from "../manifest.ts";
import { parseEngineAnswer } from "../rego/rego-answer.ts";
import type { ServerDialect, ServerQuestion } from "./server-engine.ts";

const noEntities = new EntityGraph([], new Set());
const maxReasons = 256;

/**
 * cedar-agent's `POST /v1/is_authorized`, answered by a decision and its diagnostics. The gateway's agent and tool are sent
 * as additional entities. A policy that fails on the server blocks, whatever it answers: Cedar leaves out a `forbid` that
 * fails.
 */
export class CedarAgent implements ServerDialect {
  readonly type = "cedar-agent";
  readonly #name: string;
  readonly #schema: CedarSchema;
  readonly #policies: ReadonlyMap<string, NamedPolicy>;

  constructor({ ref, policies }: EngineSource, schema: CedarSchema) {
    this.#name = ref.name;
    this.#schema = schema;
    this.#policies = policies;
  }

  ask(action: ActionEnvelope): ServerQuestion | Verdict {
    const name = actionName(action);
    if (!this.#schema.contexts.has(name))
      return notPermitted(this.#name, `the schema of \`${this.#name}\` declares no action \`${name}\``);
    const { principal, action: called, resource, context, entities } = readRequest(action, this.#schema, noEntities);
    const body = {
      principal: entityText(principal),
      action: entityText(called),
      resource: entityText(resource),
      context,
      additional_entities: entities,
    };
    return { path: "/v1/is_authorized", body: body as unknown as JsonObject };
  }

  read(body: Uint8Array): Verdict {
    const answer = parseEngineAnswer(body);
    const { decision, diagnostics } = isJsonObject(answer) ? answer : {};
    if (decision !== "Allow" && decision !== "Deny") throw malformed("`decision` to be Allow or Deny");
    const { reason, errors } = isJsonObject(diagnostics) ? diagnostics : {};
    if (!isList(reason) || !isList(errors) || reason.length > maxReasons)
      throw malformed(`\`diagnostics\` with lists of errors and of at most ${maxReasons} reasons`);
    if (errors.length > 0) throw new EngineError("evaluation", `${errors.length} policies failed on the server`);
    const isAllowed = decision === "Allow";
    const reasons = reason.map((id) => this.#reasonOf(id, isAllowed));
    if (reasons.length > 0) {
      const isHeld = reasons.some((each) => each.decision === "review");
      return verdictOf(isAllowed ? (isHeld ? "review" : "allow") : "block", reasons, this.#name);
    }
    if (isAllowed) throw malformed("Allow to name a policy");
    return notPermitted(this.#name);
  }

  #reasonOf(id: Json, isAllowed: boolean): EngineReason {
    if (typeof id !== "string" || !reasonIdPattern.test(id))
      throw malformed("ids of policies to be words in lower case");
    const { message, severity, isReview = false, approvals } = this.#policies.get(id) ?? {};
    const decision = isAllowed ? (isReview ? "review" : "allow") : "block";
    const reason: EngineReason = {
      ...{ id, decision, severity: severity ?? defaultSeverity[decision] },
      message: message ?? `the policy \`${id}\` ${isAllowed ? "permits" : "forbids"} this`,
    };
    return decision === "review" && approvals !== undefined ? { ...reason, approvals } : reason;
  }
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function malformed(expected: string): EngineError {
  return new EngineError("answer", `expected ${expected} in the server's answer`);
}

/** An entity as Cedar writes it: `Tool::"notes/write_note"`. */
function entityText({ type, id }: { readonly type: string; readonly id: string }): string {
  const escaped = id.toWellFormed().replace(/["\\\p{Cc}]/gu, (character) => {
    return /["\\]/.test(character) ? `\\${character}` : `\\u{${character.charCodeAt(0).toString(16)}}`;
  });
  return `${type}::"${escaped}"`;
}
