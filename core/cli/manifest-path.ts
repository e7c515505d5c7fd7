import { InvalidArgumentError } from "commander";
import type { ToldManifest } from "../ingress/manifest-admin.ts";
import { type AdminOptions, askJson } from "./admin-client.ts";

export const manifestsPath = "/admin/v1/manifests";

/** The name of a task, or a mistake in the command line. */
export function parseTask(text: string): string {
  if (/^[a-z0-9][a-z0-9._-]{0,63}$/.test(text)) return text;
  throw new InvalidArgumentError("expected the name of a task: 1 to 64 of `a-z 0-9 . _ -`");
}

/** The manifest of a task. Rejects as `askAdmin` does. */
export function askManifest(options: AdminOptions, task: string): Promise<ToldManifest> {
  return askJson(options, `${manifestsPath}/${task}`);
}
