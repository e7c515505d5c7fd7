import { wideManifest } from "./task-world.ts";

/**
 * Gives the session of a label a task of its own, whose manifest expects everything, so that it counts apart from other sessions
 * of its principal. `key`: of an operator; `principal`: the id of the agent's key.
 */
export async function separateSession(adminUrl: string, key: string, principal: string, label: string): Promise<void> {
  const task = label.toLowerCase();
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const manifest = { ...wideManifest, task, principal, session: label, max_actions: 1_000_000, expires_at };
  const response = await fetch(`${adminUrl}/admin/v1/manifests`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify(manifest),
  });
  if (response.status !== 200) throw new Error(`expected a manifest for \`${label}\`, got ${await response.text()}`);
}
