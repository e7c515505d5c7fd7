import { isUtf8 } from "node:buffer";
import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import { VerifiedExtension } from "../trust/verified-extension.ts";
import { Faults } from "./fault.ts";
import { checkClaim } from "./pack.ts";
import { metadataKeys, nameRule, parseSettings, versionRule } from "./pack-manifest.ts";
import type { SettingsSchema } from "./settings.ts";
import { mergeTestSettings, type ReadyTest, readTests } from "./test-file.ts";
import { parseYaml, startOf } from "./yaml/file.ts";
import { MapReader } from "./yaml/reader.ts";

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
const manifestKeys = [
  "apiVersion",
  "kind",
  "metadata",
  "abi",
  "module",
  "digest",
  "settings",
  "sequence",
  "capabilities",
  "limits",
];
const moduleRule = { max: 64, pattern: /^[a-z0-9][a-z0-9-]*\.wasm$/, shape: "a file name like `plugin.wasm`" } as const;
const digestRule = { max: 71, pattern: /^sha256:[0-9a-f]{64}$/, shape: "`sha256:` and 64 hex digits" } as const;
const fuelBounds = { min: 10_000, max: 50_000_000, usual: 5_000_000 } as const;
const maxTests = 10_000;
const pageBounds = { min: 1, max: 256, usual: 64 } as const;

/**
 * Reads `plugin.yaml` and the module it names from the verified files. Throws PLUGIN_INVALID with every fault, also
 * where the module does not have the manifest's digest.
 */
export function readPlugin(path: string, extension: VerifiedExtension, settings: JsonObject): PluginSource {
  const faults = new Faults();
  const files = VerifiedExtension.open(extension);
  const bytes = files.get(manifestFile);
  if (bytes === undefined || !isUtf8(bytes)) {
    throw new GatewayError("PLUGIN_INVALID", `\`${path}\`: expected a manifest \`${manifestFile}\` in UTF-8`);
  }
  const root = parseYaml(manifestFile, bytes.toString("utf8"), faults);
  faults.throwIfAny(path, "PLUGIN_INVALID");
  if (root === undefined) throw new TypeError("readPlugin: expected a document or a fault");
  const reader = new MapReader(root, "the manifest", manifestKeys, faults);
  const head = readHead(reader, faults);
  const sequence = reader.integer("sequence", 0, Number.MAX_SAFE_INTEGER, 0);
  checkClaim({ ...head, sequence, place: reader.place }, extension, faults);
  const source = { ...head, sequence, ...readModule(reader, files), limits: readLimits(reader, faults) };
  const settingsSchema = parseSettings(reader, faults);
  const merged = mergeSettings(settingsSchema, reader, settings);
  faults.throwIfAny(path, "PLUGIN_INVALID");
  return { ...source, settings: merged, settingsSchema };
}

/**
 * Reads the plugin's own tests, each with its settings; at most 10,000. Rejects with PLUGIN_INVALID with every fault.
 */
export async function readPluginTests(
  path: string,
  extension: VerifiedExtension,
  schema: SettingsSchema,
): Promise<readonly ReadyTest[]> {
  const faults = new Faults();
  const tests = await readTests(VerifiedExtension.open(extension), "action", faults);
  if (tests.length > maxTests) {
    faults.add(startOf("tests"), `expected at most ${maxTests} cases, got ${tests.length}`);
  }
  const ready = mergeTestSettings(tests, schema, faults);
  faults.throwIfAny(path, "PLUGIN_INVALID");
  return ready;
}

function readHead(reader: MapReader, faults: Faults): Pick<PluginSource, "name" | "version"> {
  reader.choice("apiVersion", ["gateway/v1"], undefined);
  reader.choice("kind", ["Plugin"], undefined);
  reader.choice("abi", ["gateway-plugin/1"], undefined);
  if (reader.items("capabilities").length > 0) {
    reader.fault("capabilities", "expected no capabilities: this version has none to give");
  }
  const node = reader.get("metadata");
  if (node === undefined) {
    reader.fault("metadata", "expected `metadata`, got nothing");
    return { name: "", version: "" };
  }
  const metadata = new MapReader(node, "`metadata`", metadataKeys, faults);
  metadata.text("title", { max: 160 });
  metadata.optionalText("description", { max: 1_024 });
  metadata.texts("authors", { max: 160 });
  metadata.optionalText("license", { max: 160 });
  return { name: metadata.text("name", nameRule), version: metadata.text("version", versionRule) };
}

function readModule(reader: MapReader, files: ReadonlyMap<string, Buffer>): Pick<PluginSource, "module"> {
  const name = reader.text("module", moduleRule);
  const digest = reader.text("digest", digestRule);
  const module = files.get(name) ?? new Uint8Array();
  if (!files.has(name))
    reader.fault("module", "expected a file of the plugin's folder, got no such file; `gateway plugin build` makes it");
  else if (contentDigest(module) !== digest)
    reader.fault("digest", `expected that of the module, ${contentDigest(module)}`);
  return { module };
}

function readLimits(reader: MapReader, faults: Faults): PluginLimits {
  const node = reader.get("limits");
  if (node === undefined) return { fuel: fuelBounds.usual, memoryPages: pageBounds.usual };
  const limits = new MapReader(node, "`limits`", ["fuel", "memory_pages"], faults);
  return {
    fuel: limits.integer("fuel", fuelBounds.min, fuelBounds.max, fuelBounds.usual),
    memoryPages: limits.integer("memory_pages", pageBounds.min, pageBounds.max, pageBounds.usual),
  };
}

function mergeSettings(schema: SettingsSchema, reader: MapReader, settings: JsonObject): JsonObject {
  try {
    return schema.merge(settings);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    reader.fault("settings", `settings from the configuration: ${error.message}`);
    return {};
  }
}
