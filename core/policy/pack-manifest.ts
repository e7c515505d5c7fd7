import type { JsonObject } from "../action/json.ts";
import type { YamlNode } from "../config/document.ts";
import type { FaultList, Place } from "../config/fault.ts";
import { toInstant } from "../config/format.ts";
import { shapes } from "./cel/syntax.ts";
import { checkNode, memberOf } from "./extension-file.ts";
import { packSchema } from "./schema.ts";
import { compileSettings, noSettings, type SettingsSchema } from "./settings.ts";

/** `pack.yaml`. */
export interface PackManifest {
  readonly name: string;
  readonly version: string;
  readonly title: string;
  readonly namespace: string;
  readonly settings: SettingsSchema;
  /** Globs of the rule files, relative to the pack. */
  readonly rules: readonly string[];
  /** Increases with each release of the pack; 0 by default. */
  readonly sequence: number;
  /** RFC 3339, milliseconds, UTC. */
  readonly issuedAt: string | undefined;
  readonly expiresAt: string | undefined;
  /** True where its `allow` counts as abstain. */
  readonly tightenOnly: boolean;
  readonly place: Place;
}

/**
 * Reads the manifest; an expired pack is a fault. `now` is RFC 3339 with milliseconds, UTC. A manifest with faults comes
 * back with placeholders, so that the faults of the rules are reported too.
 */
export function parsePackManifest(node: YamlNode, now: string, faults: FaultList): PackManifest {
  const form = checkNode(node, packSchema, faults);
  if (form === undefined) return placeholderFor(node);
  const { metadata, namespace, rules, sequence, tighten_only: tightenOnly } = form;
  const expiresAt = toInstant(form.expires_at);
  if (expiresAt !== undefined && expiresAt <= now) {
    faults.addAt(memberOf(node, "expires_at")?.place ?? node.place, `the pack expired at ${expiresAt}`);
  }
  return {
    name: metadata.name,
    version: metadata.version,
    title: metadata.title.trim(),
    namespace,
    settings: readSettings(node, form.settings, faults),
    rules,
    sequence,
    issuedAt: toInstant(form.issued_at),
    expiresAt,
    tightenOnly,
    place: node.place,
  };
}

function placeholderFor(node: YamlNode): PackManifest {
  const namespace = memberOf(node, "namespace");
  return {
    name: "",
    version: "",
    title: "",
    namespace: namespace?.kind === "scalar" ? String(namespace.value) : "",
    settings: { shape: shapes.json, merge: (settings) => settings },
    rules: ["rules/*.yaml"],
    sequence: 0,
    issuedAt: undefined,
    expiresAt: undefined,
    tightenOnly: false,
    place: node.place,
  };
}

/** Compiles `settings` of a manifest: a schema and its defaults. */
export function readSettings(
  manifest: YamlNode,
  settings: { readonly schema: JsonObject; readonly defaults: JsonObject } | null,
  faults: FaultList,
): SettingsSchema {
  if (settings === null) return noSettings();
  try {
    return compileSettings(settings.schema, settings.defaults);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const node = memberOf(manifest, "settings") ?? manifest;
    faults.addAt(memberOf(node, "schema")?.place ?? node.place, error.message);
    return noSettings();
  }
}
