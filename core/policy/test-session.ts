import { findActionFacts } from "../kernel/action-fact.ts";
import { type Capability, capabilities } from "../kernel/capability.ts";
import { decisions } from "../kernel/decision.ts";
import { type ActionEnvelope, protocols } from "../kernel/envelope.ts";
import { type ActionFacts, mostPastActions, type PastAction, type Taint } from "../kernel/session-state.ts";
import type { Faults } from "./fault.ts";
import { taintRule } from "./rule.ts";
import type { YamlNode } from "./yaml/node.ts";
import { MapReader } from "./yaml/reader.ts";

type Seen = Pick<ActionEnvelope, "facts" | "session_state" | "history">;

const name = { max: 256 } as const;
const most = Number.MAX_SAFE_INTEGER;
const oldest = 31_536_000;
const mostTaints = 64;

/**
 * What a case says of the session before its action: ages are whole seconds before the action's `time`. What it does not
 * say is a session that begins; facts are found in the arguments, as they are in those of a call.
 */
export function parseTestSession(reader: MapReader, action: ActionEnvelope, faults: Faults): Seen {
  const now = Date.parse(action.time);
  const reaches = action.protocol !== "model" && action.phase !== "list";
  const facts = reader.get("facts");
  const state = reader.get("session_state");
  const history = reader.items("history");
  if (history.length > mostPastActions)
    reader.fault("history", `expected at most ${mostPastActions} actions, got ${history.length}`);
  return {
    ...(facts === undefined ? {} : { facts: parseFacts(facts, faults) }),
    ...(facts === undefined && reaches ? { facts: findActionFacts(action.arguments) } : {}),
    ...(state === undefined ? {} : { session_state: parseState(state, now, faults) }),
    ...(history.length === 0 ? {} : { history: history.map((node) => parsePast(node, now, faults)) }),
  };
}

function parseFacts(node: YamlNode, faults: Faults): ActionFacts {
  const reader = new MapReader(node, "`facts`", ["hosts", "paths", "more"], faults);
  return { hosts: reader.texts("hosts", name), paths: reader.texts("paths", name), more: reader.flag("more", false) };
}

function parseState(node: YamlNode, now: number, faults: Faults): NonNullable<ActionEnvelope["session_state"]> {
  const keys = ["risk", "actions", "reviews", "tools", "new_tool", "taints"];
  const reader = new MapReader(node, "`session_state`", keys, faults);
  const taints = reader.items("taints");
  if (taints.length > mostTaints) reader.fault("taints", `expected at most ${mostTaints} taints, got ${taints.length}`);
  return {
    risk: reader.integer("risk", 0, most, 0),
    actions: reader.integer("actions", 0, most, 0),
    reviews: reader.integer("reviews", 0, most, 0),
    tools: reader.integer("tools", 0, most, 0),
    new_tool: reader.flag("new_tool", true),
    taints: taints.map((taint) => parseTaint(taint, now, faults)),
  };
}

function parseTaint(node: YamlNode, now: number, faults: Faults): Taint {
  const reader = new MapReader(node, "a taint", ["name", "target", "tool", "action", "age"], faults);
  return {
    name: reader.text("name", taintRule),
    target: reader.optionalText("target", name) ?? "upstream",
    tool: reader.optionalText("tool", name) ?? "tool",
    action: reader.optionalText("action", name) ?? "019b7600-0000-7000-8000-000000000001",
    at: timeOf(reader, now),
  };
}

function parsePast(node: YamlNode, now: number, faults: Faults): PastAction {
  const keys = ["age", "protocol", "tool", "target", "capability", "decision", "dispatched", "hosts", "paths"];
  const reader = new MapReader(node, "an action of `history`", keys, faults);
  const decision = reader.choice("decision", decisions, "allow");
  return {
    at: timeOf(reader, now),
    protocol: reader.choice("protocol", protocols, "mcp"),
    tool: reader.optionalText("tool", name) ?? "tool",
    target: reader.optionalText("target", name) ?? "upstream",
    capability: reader.choice<Capability>("capability", capabilities, "execute"),
    decision,
    dispatched: reader.flag("dispatched", decision === "allow"),
    hosts: reader.texts("hosts", name),
    paths: reader.texts("paths", name),
  };
}

function timeOf(reader: MapReader, now: number): number {
  return now - reader.integer("age", 0, oldest, 0) * 1_000;
}
