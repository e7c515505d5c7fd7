import type { JsonObject } from "./json.ts";

/** `plugin.yaml`. */
export interface PluginManifest {
  readonly apiVersion: "gateway/v1";
  readonly kind: "Plugin";
  readonly metadata: {
    /** `a`–`z`, `0`–`9` and `-`; all the plugin's rules begin with it. */
    readonly name: string;
    /** A semantic version. */
    readonly version: string;
    readonly title: string;
    readonly description?: string;
    readonly authors?: readonly string[];
    readonly license?: string;
  };
  readonly abi: "gateway-plugin/1";
  /** A file of the folder. */
  readonly module: string;
  /** `sha256:` and 64 hex digits, of the module's bytes. */
  readonly digest: string;
  readonly settings?: {
    /** A JSON Schema of `type: object` with `additionalProperties: false`. */
    readonly schema: JsonObject;
    readonly defaults?: JsonObject;
  };
  /** Rises with each release. */
  readonly sequence?: number;
  /** Must be empty: there are none yet. */
  readonly capabilities?: readonly never[];
  readonly limits?: {
    /** 10,000 to 50,000,000; default 5,000,000. */
    readonly fuel?: number;
    /** Pages of 64 KiB: 1 to 256; default 64. */
    readonly memory_pages?: number;
  };
}
