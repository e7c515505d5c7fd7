import type { JsonObject } from "../action/json.ts";
import type { Faults, Place } from "./fault.ts";
import { compileSettings, noSettings, type SettingsSchema } from "./settings.ts";
import type { YamlNode } from "./yaml/node.ts";
import { MapReader, type TextRule } from "./yaml/reader.ts";

/** `pack.yaml`. */
export interface PackManifest {
  readonly name: string;
  readonly version: string;
  readonly title: string;
  readonly description: string | undefined;
  readonly namespace: string;
  readonly settings: SettingsSchema;
  /** Globs of the rule files, relative to the pack. */
  readonly rules: readonly string[];
  /** Rises with each release of the pack; 0 where it is not stated. */
  readonly sequence: number;
  /** RFC 3339, milliseconds, UTC. */
  readonly issuedAt: string | undefined;
  readonly expiresAt: string | undefined;
  /** Whether its `allow` counts as abstaining. */
  readonly tightenOnly: boolean;
  readonly place: Place;
}

const manifestKeys = [
  "apiVersion",
  "kind",
  "metadata",
  "compatibility",
  "namespace",
  "settings",
  "sequence",
  "issued_at",
  "expires_at",
  "tighten_only",
  "rules",
] as const;
export const metadataKeys: readonly string[] = ["name", "version", "title", "description", "authors", "license"];

export const nameRule: TextRule = {
  max: 64,
  pattern: /^[a-z0-9][a-z0-9-]*$/,
  shape: "a word of a–z, 0–9 and `-`",
};
const namespaceRule = {
  max: 64,
  pattern: /^[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)*$/,
  shape: "words joined by `.`",
} as const;
export const versionRule: TextRule = {
  max: 64,
  pattern: /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/,
  shape: "a semantic version like `1.2.3`",
};
const rangeRule = { max: 64, pattern: /^>=\d+\.\d+\.\d+$/, shape: "a lowest version like `>=0.1.0`" } as const;
const line = { max: 160 } as const;

/** Reads the manifest; an expired pack is a fault. `now` is RFC 3339 with milliseconds, UTC. */
export function parsePackManifest(node: YamlNode, now: string, faults: Faults): PackManifest {
  const reader = new MapReader(node, "the manifest", manifestKeys, faults);
  reader.choice("apiVersion", ["gateway/v1"], undefined);
  reader.choice("kind", ["PolicyPack"], undefined);
  const metadata = new MapReader(
    reader.get("metadata") ?? node,
    "`metadata`",
    reader.get("metadata") === undefined ? manifestKeys : metadataKeys,
    faults,
  );
  metadata.texts("authors", line);
  metadata.optionalText("license", line);
  checkCompatibility(reader, faults);
  const expiresAt = reader.instant("expires_at", false);
  if (expiresAt !== undefined && expiresAt <= now) reader.fault("expires_at", `the pack expired at ${expiresAt}`);
  return {
    name: metadata.text("name", nameRule),
    version: metadata.text("version", versionRule),
    title: metadata.text("title", line),
    description: metadata.optionalText("description", { max: 1_024 }),
    namespace: reader.text("namespace", namespaceRule),
    settings: parseSettings(reader, faults),
    rules: reader.get("rules") === undefined ? ["rules/*.yaml"] : reader.texts("rules", { max: 128 }),
    sequence: reader.integer("sequence", 0, Number.MAX_SAFE_INTEGER, 0),
    issuedAt: reader.instant("issued_at", false),
    expiresAt,
    tightenOnly: reader.flag("tighten_only", false),
    place: reader.place,
  };
}

function checkCompatibility(reader: MapReader, faults: Faults): void {
  const node = reader.get("compatibility");
  if (node === undefined) return;
  const compatibility = new MapReader(node, "`compatibility`", ["gateway", "envelope"], faults);
  compatibility.optionalText("gateway", rangeRule);
  compatibility.integer("envelope", 1, 1, 1);
}

/** `settings` of a manifest: a schema and its defaults. */
export function parseSettings(reader: MapReader, faults: Faults): SettingsSchema {
  const node = reader.get("settings");
  if (node === undefined) return noSettings();
  const settings = new MapReader(node, "`settings`", ["schema", "defaults"], faults);
  const schema: JsonObject = settings.jsonObject("schema");
  try {
    return compileSettings(schema, settings.jsonObject("defaults"));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    settings.fault("schema", error.message);
    return noSettings();
  }
}
