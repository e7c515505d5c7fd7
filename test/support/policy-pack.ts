import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { GatewayError } from "../../core/action/error.ts";
import type { JsonObject } from "../../core/action/json.ts";
import type { Mode } from "../../core/action/policy.ts";
import { type LoadedPack, loadPack, type PackOptions } from "../../core/policy/pack.ts";
import { readExtensionFolder } from "../../core/trust/folder.ts";
import { acceptUnverified } from "../../core/trust/verified-extension.ts";
import { rejection } from "./ledger-world.ts";

export type PackFiles = Readonly<Record<string, string | Buffer>>;

/** A pack's manifest; `more` is further YAML at its top level. */
export function manifest(more = ""): string {
  return `apiVersion: gateway/v1
kind: PolicyPack
metadata: { name: sample, version: 1.2.3, title: Sample }
namespace: sample
${more}`;
}

/** The smallest pack with these rules (YAML list items). */
export function packOf(rules: string, more = ""): PackFiles {
  return { "pack.yaml": manifest(more), "rules/a.yaml": `rules:\n${rules}` };
}

/** Writes packs into folders of their own, and removes them all at the end of a test. */
export class PackFolders {
  readonly #folders: string[] = [];

  async write(files: PackFiles): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), "pack-"));
    this.#folders.push(folder);
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content);
    }
    return folder;
  }

  async load(
    files: PackFiles,
    settings: JsonObject = {},
    mode: Mode = "enforce",
    shadowRules: readonly string[] = [],
  ): Promise<LoadedPack> {
    return loadPack({ ...(await optionsFor(await this.write(files), settings, mode)), shadowRules });
  }

  async remove(): Promise<void> {
    await Promise.all(this.#folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
  }
}

/** Unsigned, loaded at the start of 2026. */
export async function optionsFor(
  path: string,
  settings: JsonObject = {},
  mode: Mode = "enforce",
): Promise<PackOptions> {
  const extension = acceptUnverified(await readExtensionFolder(path, "pack"), null);
  return { extension, path, mode, settings, shadowRules: [], clock: () => Date.UTC(2026, 0, 1) };
}

/** The faults a pack is refused for, without the line that names the pack. */
export async function faultsOf(folders: PackFolders, files: PackFiles, settings: JsonObject = {}): Promise<string[]> {
  const error = await rejection(folders.load(files, settings));
  if (!(error instanceof GatewayError && /^(PACK|EXTENSION)_INVALID$/.test(error.code))) throw error;
  return error.message.split("\n").slice(1);
}
