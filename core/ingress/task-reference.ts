import type { IncomingMessage } from "node:http";
import { singleHeader } from "../identity/header.ts";
import { GatewayError } from "../kernel/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import type { Principal } from "../kernel/principal.ts";
import type { SessionScope } from "../kernel/session-scope.ts";
import type { TaskBinding } from "../manifest/task-binding.ts";

/** The member of `_meta` that carries a reference, beside the header `X-Gateway-Task`. It goes no further. */
export const taskMetaKey = "io.agent-governance-gateway/task";

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
