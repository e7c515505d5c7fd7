import type { ActionEnvelope } from "../contract/index.ts";

/** A sample call of an MCP tool, with the given changes. */
export function exampleAction(changed: Partial<ActionEnvelope> = {}): ActionEnvelope {
  return {
    version: 1,
    id: "019b7600-0000-7000-8000-000000000000",
    time: "2026-01-01T00:00:00.000Z",
    tenant: "default",
    principal: { id: "principal-v1-test", role: "operator", keyId: "test" },
    session: { id: "session-v1-test", transport: "http" },
    task: null,
    protocol: "mcp",
    phase: "input",
    tool: "tool",
    target: "upstream",
    capability: "execute",
    arguments: {},
    client: { name: "test", version: "1.0.0", address: "127.0.0.1" },
    ...changed,
  };
}
