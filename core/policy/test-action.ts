import { type Capability, capabilities } from "../kernel/capability.ts";
import { ticketStandings } from "../kernel/capability-ticket.ts";
import { type ActionEnvelope, phases, protocols, sealEnvelope } from "../kernel/envelope.ts";
import type { JsonObject } from "../kernel/json.ts";
import { roles } from "../kernel/role.ts";
import type { Faults } from "./fault.ts";
import { parseTestSession } from "./test-session.ts";
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

/** What a case calls the action it is about: as rules of a pack see it, and as a plugin is given it. */
export type Subject = "envelope" | "action";

/**
 * An action of which only the interesting part was written: an operator's MCP call at the start of 2026. Rules are shown
 * the last actions of its session, plugins are not.
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
