import { type Capability, capabilities } from "../action/capability.ts";
import { ticketStandings } from "../action/capability-ticket.ts";
import { decisions } from "../action/decision.ts";
import { type ActionEnvelope, phases, protocols, sealEnvelope } from "../action/envelope.ts";
import { findActionFacts } from "../action/fact.ts";
import type { JsonObject } from "../action/json.ts";
import { roles } from "../action/role.ts";
import { type ActionFacts, maxPastActions, type PastAction, type Taint } from "../action/session-state.ts";
import type { Faults } from "./fault.ts";
import { taintRule } from "./rule.ts";
import { toJson, type YamlNode } from "./yaml/node.ts";
import { MapReader } from "./yaml/reader.ts";

const actionKeys = [
  "time",
  "tenant",
  "principal",
  "session",
  "task",
  "protocol",
  "phase",
  "tool",
  "target",
  "capability",
  "arguments",
  "continuation",
  "output",
  "tool_definition",
  "untrusted",
  "ticket",
  "client",
  "facts",
  "session_state",
] as const;
const name = { max: 256 } as const;

/** The name of a case's action: `envelope` in packs, `action` in plugins. */
export type Subject = "envelope" | "action";

/**
 * Parses a partial action: an operator's MCP call at the start of 2026 by default. Rules see the session's earlier
 * actions, plugins do not.
 */
export function parseTestAction(node: YamlNode, called: Subject, faults: Faults): ActionEnvelope {
  const keys = called === "envelope" ? [...actionKeys, "history"] : actionKeys;
  const reader = new MapReader(node, `\`${called}\``, keys, faults);
  const action = parseAction(reader, node, faults);
  return sealEnvelope({ ...action, ...parseTestSession(reader, action, faults) });
}

function parseAction(reader: MapReader, node: YamlNode, faults: Faults): ActionEnvelope {
  const nested = (key: string, keys: readonly string[]): MapReader =>
    new MapReader(
      reader.get(key) ?? { kind: "map", members: new Map(), place: node.place },
      `\`${key}\``,
      keys,
      faults,
    );
  const principal = nested("principal", ["id", "role", "key_id"]);
  const session = nested("session", ["id", "transport", "label"]);
  const client = nested("client", ["name", "version", "address"]);
  const label = session.optionalText("label", name);
  const continuation =
    reader.get("continuation") === undefined ? {} : { continuation: reader.jsonObject("continuation") };
  const output = reader.json("output");
  return {
    version: 1,
    id: "019b7600-0000-7000-8000-000000000000",
    time: reader.instant("time", false) ?? "2026-01-01T00:00:00.000Z",
    tenant: reader.optionalText("tenant", name) ?? "default",
    principal: {
      id: principal.optionalText("id", name) ?? "principal-v1-test",
      role: principal.choice("role", roles, "operator"),
      keyId: principal.optionalText("key_id", name) ?? "test",
    },
    session: {
      id: session.optionalText("id", name) ?? "session-v1-test",
      transport: session.choice("transport", ["http", "sse"], "http"),
      ...(label === undefined ? {} : { label }),
    },
    task: reader.optionalText("task", name) ?? null,
    protocol: reader.choice("protocol", protocols, "mcp"),
    phase: reader.choice("phase", phases, "input"),
    tool: reader.optionalText("tool", name) ?? "tool",
    target: reader.optionalText("target", name) ?? "upstream",
    capability: reader.choice<Capability>("capability", capabilities, "execute"),
    arguments: reader.json("arguments") ?? {},
    ...continuation,
    ...(output === undefined ? {} : { output }),
    ...toolDefinition(reader.get("tool_definition"), faults),
    ...(reader.flag("untrusted", false) ? { untrusted: true } : {}),
    ...ticket(reader.get("ticket"), faults),
    client: {
      name: client.optionalText("name", name) ?? "test",
      version: client.optionalText("version", name) ?? "1.0.0",
      address: client.optionalText("address", name) ?? "127.0.0.1",
    },
  };
}

function ticket(node: YamlNode | undefined, faults: Faults): Pick<ActionEnvelope, "ticket"> {
  if (node === undefined) return {};
  const reader = new MapReader(node, "`ticket`", ["id", "standing"], faults);
  const standing = reader.choice("standing", ticketStandings, "valid");
  const isBelieved = standing !== "forged" && standing !== "other_tenant";
  return { ticket: { id: isBelieved ? (reader.optionalText("id", name) ?? "tkt_test") : null, standing } };
}

function toolDefinition(node: YamlNode | undefined, faults: Faults): Pick<ActionEnvelope, "tool_definition"> {
  if (node === undefined) return {};
  const reader = new MapReader(node, "`tool_definition`", ["digest", "annotations"], faults);
  const annotations = reader.get("annotations");
  return {
    tool_definition: {
      digest: reader.optionalText("digest", name) ?? `sha256:${"0".repeat(64)}`,
      annotations: annotations === undefined ? {} : (toJson(annotations) as JsonObject),
    },
  };
}

type Seen = Pick<ActionEnvelope, "facts" | "session_state" | "history">;

const nameTestSession = { max: 256 } as const;
const most = Number.MAX_SAFE_INTEGER;
const oldest = 31_536_000;
const maxTaints = 64;

/**
 * Parses the session state of a case: ages are whole seconds before the action's `time`. The default is a new session;
 * facts are derived from the arguments as for a real call.
 */
function parseTestSession(reader: MapReader, action: ActionEnvelope, faults: Faults): Seen {
  const now = Date.parse(action.time);
  const reaches = action.protocol !== "model" && action.phase !== "list";
  const facts = reader.get("facts");
  const state = reader.get("session_state");
  const history = reader.items("history");
  if (history.length > maxPastActions)
    reader.fault("history", `expected at most ${maxPastActions} actions, got ${history.length}`);
  return {
    ...(facts === undefined ? {} : { facts: parseFacts(facts, faults) }),
    ...(facts === undefined && reaches ? { facts: findActionFacts(action.arguments) } : {}),
    ...(state === undefined ? {} : { session_state: parseState(state, now, faults) }),
    ...(history.length === 0 ? {} : { history: history.map((node) => parsePast(node, now, faults)) }),
  };
}

function parseFacts(node: YamlNode, faults: Faults): ActionFacts {
  const reader = new MapReader(node, "`facts`", ["hosts", "paths", "more"], faults);
  return {
    hosts: reader.texts("hosts", nameTestSession),
    paths: reader.texts("paths", nameTestSession),
    more: reader.flag("more", false),
  };
}

function parseState(node: YamlNode, now: number, faults: Faults): NonNullable<ActionEnvelope["session_state"]> {
  const keys = ["risk", "actions", "reviews", "tools", "new_tool", "taints"];
  const reader = new MapReader(node, "`session_state`", keys, faults);
  const taints = reader.items("taints");
  if (taints.length > maxTaints) reader.fault("taints", `expected at most ${maxTaints} taints, got ${taints.length}`);
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
    target: reader.optionalText("target", nameTestSession) ?? "upstream",
    tool: reader.optionalText("tool", nameTestSession) ?? "tool",
    action: reader.optionalText("action", nameTestSession) ?? "019b7600-0000-7000-8000-000000000001",
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
    tool: reader.optionalText("tool", nameTestSession) ?? "tool",
    target: reader.optionalText("target", nameTestSession) ?? "upstream",
    capability: reader.choice<Capability>("capability", capabilities, "execute"),
    decision,
    dispatched: reader.flag("dispatched", decision === "allow"),
    hosts: reader.texts("hosts", nameTestSession),
    paths: reader.texts("paths", nameTestSession),
  };
}

function timeOf(reader: MapReader, now: number): number {
  return now - reader.integer("age", 0, oldest, 0) * 1_000;
}
