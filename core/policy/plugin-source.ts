import { isUtf8 } from "node:buffer";
import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import { parseDocument, type YamlNode } from "../config/document.ts";
import { FaultList } from "../config/fault.ts";
import { VerifiedExtension } from "../trust/verified-extension.ts";
import { checkNode, memberOf, startOf } from "./extension-file.ts";
import { checkClaim } from "./pack.ts";
import { readSettings } from "./pack-manifest.ts";
import { pluginSchema } from "./schema.ts";
import { mergeSettings, type SettingsSchema } from "./settings.ts";
import { mergeTestSettings, type ReadyTest, readTests } from "./test-file.ts";

/** The limits of one call of a plugin. */
interface PluginLimits {
  /** Units of fuel; a simple instruction costs one. */
  readonly fuel: number;
  /** Pages of 64 KiB. */
  readonly memoryPages: number;
}

/** The parsed files of a plugin; its module is not checked yet. */
export interface PluginSource {
  readonly name: string;
  readonly version: string;
  /** Increases with each release; 0 by default. */
  readonly sequence: number;
  readonly module: Uint8Array;
  /** The author's defaults with the operator's values applied. */
  readonly settings: JsonObject;
  readonly settingsSchema: SettingsSchema;
  readonly limits: PluginLimits;
}

const manifestFile = "plugin.yaml";
const maxTests = 10_000;

/**
 * Reads `plugin.yaml` and the module it names from the verified files. Throws PLUGIN_INVALID with every fault, also
 * where the module does not have the manifest's digest.
 */
export function readPlugin(path: string, extension: VerifiedExtension, settings: JsonObject): PluginSource {
  const faults = new FaultList(manifestFile);
  const files = VerifiedExtension.open(extension);
  const bytes = files.get(manifestFile);
  if (bytes === undefined || !isUtf8(bytes)) {
    const got = bytes === undefined ? "no such file" : "other bytes";
    throw new GatewayError(
      "PLUGIN_INVALID",
      `\`${path}\`: expected a manifest \`${manifestFile}\` in UTF-8, got ${got}`,
    );
  }
  const root = parseDocument(manifestFile, bytes.toString("utf8"), faults);
  const form = root === undefined ? undefined : checkNode(root, pluginSchema, faults);
  const module = root === undefined ? undefined : findModule(root, files, faults);
  faults.throwIfAny("PLUGIN_INVALID", path);
  if (root === undefined || form === undefined || module === undefined) {
    throw new TypeError("readPlugin: expected a manifest or a fault");
  }
  const { metadata, sequence, capabilities, limits } = form;
  const { name, version } = metadata;
  const addFault = (key: string, message: string): void =>
    faults.addAt(memberOf(root, key)?.place ?? root.place, message);
  if (capabilities.length > 0) addFault("capabilities", "expected no capabilities: this version has none to give");
  checkClaim({ name, version, sequence, place: root.place }, extension, faults);
  const settingsSchema = readSettings(root, form.settings, faults);
  const merged = mergeSettings(settingsSchema, settings, (message) =>
    addFault("settings", `settings from the configuration: ${message}`),
  );
  faults.throwIfAny("PLUGIN_INVALID", path);
  const { fuel, memory_pages: memoryPages } = limits;
  return { name, version, sequence, module, settings: merged, settingsSchema, limits: { fuel, memoryPages } };
}

/**
 * Reads the plugin's own tests, each with its settings; at most 10,000. Rejects with PLUGIN_INVALID with every fault.
 */
export async function readPluginTests(
  path: string,
  extension: VerifiedExtension,
  schema: SettingsSchema,
): Promise<readonly ReadyTest[]> {
  const faults = new FaultList("");
  const tests = await readTests(VerifiedExtension.open(extension), "action", faults);
  if (tests.length > maxTests) {
    faults.addAt(startOf("tests"), `expected at most ${maxTests} cases, got ${tests.length}`);
  }
  const ready = mergeTestSettings(tests, schema, faults);
  faults.throwIfAny("PLUGIN_INVALID", path);
  return ready;
}

/** Finds the module that the manifest names; undefined where the name is missing or has a fault. */
function findModule(root: YamlNode, files: ReadonlyMap<string, Buffer>, faults: FaultList): Buffer | undefined {
  const [name, digest] = [memberOf(root, "module"), memberOf(root, "digest")];
  if (name?.kind !== "scalar") return undefined;
  const module = files.get(String(name.value));
  if (module === undefined) {
    const expected = "expected a file of the plugin's folder, got no such file";
    faults.addAt(name.place, `${expected}; \`gateway plugin build\` makes it`);
  } else if (digest?.kind === "scalar" && contentDigest(module) !== digest.value) {
    faults.addAt(
      digest.place,
      `expected that of the module, ${contentDigest(module)}; \`gateway plugin build\` writes it`,
    );
  }
  return module;
}
