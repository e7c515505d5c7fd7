import { type ActionEnvelope, sealEnvelope } from "../../core/action/envelope.ts";

/** A plausible action, with what a test changes about it. */
export function makeAction(changed: Partial<ActionEnvelope> = {}): ActionEnvelope {
  return sealEnvelope({
    version: 1,
    id: "01890000-0000-7000-8000-000000000001",
    time: "2026-01-01T00:00:00.000Z",
    tenant: "acme",
    principal: { id: "principal-v1-test", role: "operator", keyId: "k1" },
    session: { id: "session-v1-test", transport: "http" },
    task: null,
    protocol: "mcp",
    phase: "input",
    tool: "read_note",
    target: "notes",
    capability: "read",
    arguments: {},
    client: { name: "test", version: "1", address: "127.0.0.1" },
    ...changed,
  });
}
