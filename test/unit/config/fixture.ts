import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GatewayError } from "../../../core/action/error.ts";
import type { GatewayConfig } from "../../../core/config/gateway-config.ts";
import { loadConfig } from "../../../core/config/load.ts";

export const hashA: string = `sha256:${"a".repeat(64)}`;
export const hashB: string = `sha256:${"b".repeat(64)}`;

/** Runs `use` with the path of a file that holds `content`, and removes it. */
export async function withFile<T>(content: string | Uint8Array, use: (path: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "gateway-config-"));
  try {
    const path = join(folder, "gateway.yaml");
    await writeFile(path, content);
    return await use(path);
  } finally {
    await rm(folder, { recursive: true });
  }
}

export function loadText(content: string | Uint8Array, env: NodeJS.ProcessEnv = {}): Promise<GatewayConfig> {
  return withFile(content, (path) => loadConfig(path, env));
}

/** The faults of a text, one a line, without the folder of its file; empty where it loads. */
export async function faultsOf(content: string | Uint8Array, env: NodeJS.ProcessEnv = {}): Promise<string[]> {
  return withFile(content, async (path) => {
    try {
      await loadConfig(path, env);
      return [];
    } catch (error) {
      if (!(error instanceof GatewayError && error.code === "CONFIG_INVALID")) throw error;
      return (error.detail ?? "").split("\n").map((line) => line.replace(path, "gateway.yaml"));
    }
  });
}
