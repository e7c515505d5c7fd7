import { type ActionEffect, type ActionFacts, capabilityEffect, type FactStatement } from "../action/action-fact.ts";
import { type ActionEnvelope, sealEnvelope, type ToolDefinition } from "../action/envelope.ts";
import { findPlaces } from "../action/fact.ts";
import type { JsonObject } from "../action/json.ts";
import { withDefaults } from "../config/check.ts";
import { buildStatement } from "../config/fact-schema.ts";
import { toInstant } from "../config/format.ts";
import { type TestEnvelopeForm, testEnvelopeSchema } from "./schema.ts";

/** The action of a case. */
export interface TestedAction {
  readonly envelope: ActionEnvelope;
  /** The statement about its arguments; their facts are then found when the case runs. */
  readonly stated: FactStatement | undefined;
}

/** The name of a case's action: `envelope` in packs, `action` in plugins. */
export type Subject = "envelope" | "action";

/**
 * Builds the action of a case from its given members, already checked: an operator's MCP call at the start of 2026 by
 * default, the first of its session. Ages are whole seconds before the action's `time`; facts are derived from the
 * arguments as for a real call. Rules see the session's earlier actions, plugins do not.
 */
export function buildTestAction(given: JsonObject, subject: Subject): TestedAction {
  const form = withDefaults(testEnvelopeSchema, given);
  const { principal, session, client, task, ticket, untrusted, continuation } = form;
  const action: ActionEnvelope = {
    version: 1,
    id: "019b7600-0000-7000-8000-000000000000",
    time: toInstant(form.time) ?? form.time,
    tenant: form.tenant,
    principal: { id: principal.id, role: principal.role, keyId: principal.key_id },
    session: {
      id: session.id,
      transport: session.transport,
      ...(session.label === null ? {} : { label: session.label }),
    },
    task,
    protocol: form.protocol,
    phase: form.phase,
    tool: form.tool,
    target: form.target,
    capability: form.capability,
    arguments: form.arguments,
    ...(continuation === null ? {} : { continuation }),
    ...(Object.hasOwn(given, "output") ? { output: form.output } : {}),
    ...(form.tool_definition === null ? {} : { tool_definition: definitionOf(form.tool_definition) }),
    ...(untrusted ? { untrusted } : {}),
    ...(ticket === null ? {} : { ticket: ticketOf(ticket) }),
    client,
  };
  const envelope = sealEnvelope({ ...action, ...sessionOf(form, action, subject) });
  return { envelope, stated: form.stated === null ? undefined : buildStatement(form.stated) };
}

/** The definition without the members that the case leaves out. */
function definitionOf(form: NonNullable<TestEnvelopeForm["tool_definition"]>): ToolDefinition {
  const { digest, annotations, findings, ...given } = form;
  const members = Object.entries(given).filter(([, value]) => value !== null);
  return {
    digest,
    annotations,
    ...(findings.length === 0 ? {} : { findings }),
    ...(Object.fromEntries(members) as Partial<ToolDefinition>),
  };
}

/** The id of a ticket that is forged or of another tenant cannot be believed. */
function ticketOf({ id, standing }: NonNullable<TestEnvelopeForm["ticket"]>): NonNullable<ActionEnvelope["ticket"]> {
  const isBelieved = standing !== "forged" && standing !== "other_tenant";
  return { id: isBelieved ? id : null, standing };
}

/** The facts that a case states. A rule that reads a member which they lack fails, as it should. */
function statedFacts(facts: NonNullable<TestEnvelopeForm["facts"]>, effect: ActionEffect): ActionFacts {
  const given = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== null));
  return { effect, ...given } as ActionFacts;
}

function sessionOf(
  { facts, session_state: state, history }: TestEnvelopeForm,
  action: ActionEnvelope,
  subject: Subject,
): Pick<ActionEnvelope, "facts" | "session_state" | "history"> {
  const now = Date.parse(action.time);
  const hasFacts = action.protocol !== "model" && action.phase !== "list";
  const at = (age: number): number => now - age * 1_000;
  const effect = capabilityEffect[action.capability];
  const derived =
    facts !== null ? statedFacts(facts, effect) : hasFacts ? { ...findPlaces(action.arguments), effect } : null;
  return {
    ...(derived === null ? {} : { facts: derived }),
    ...(state === null
      ? {}
      : { session_state: { ...state, taints: state.taints.map(({ age, ...taint }) => ({ ...taint, at: at(age) })) } }),
    ...(subject === "action" || history.length === 0
      ? {}
      : {
          history: history.map(({ age, dispatched, ...past }) => ({
            ...past,
            at: at(age),
            dispatched: dispatched ?? past.decision === "allow",
          })),
        }),
  };
}
