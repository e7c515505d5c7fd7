import { isIP, isIPv6 } from "node:net";
import { parsedUrl, withoutBrackets } from "../action/parsed-url.ts";
import { isTaint } from "../action/session-state.ts";
import { hasUnprintable } from "../action/visible-text.ts";
import { isEffectKey } from "../fact/effect-statement.ts";
import { isLoopback } from "./repetition.ts";

export type FormatName =
  | "name"
  | "path"
  | "argument"
  | "listen_host"
  | "allowed_host"
  | "private_host"
  | "origin"
  | "url"
  | "webhook_url"
  | "oauth_url"
  | "claim"
  | "scope"
  | "variable"
  | "process_variable"
  | "header_name"
  | "header_value"
  | "key_hash"
  | "public_key"
  | "digest"
  | "instant"
  | "identity_issuer"
  | "identity_subject"
  | "identity_prefix"
  | "tool_prefix"
  | "tool_glob"
  | "action_glob"
  | "effect_key"
  | "argument_place"
  | "absolute_path"
  | "field_glob"
  | "rule_glob"
  | "meta_key"
  | "model_name"
  | "provider_key"
  | "taint"
  | "printable"
  | "timestamp";

/** A kind of strings. */
interface Format {
  /** Completes "expected …". */
  readonly expected: string;
  /** True where even a wrong value may be a secret, pasted into the wrong place: faults give its length only. */
  readonly sensitive: boolean;
  /** The whole check as a JSON Schema pattern; absent where a pattern cannot express it. */
  readonly pattern?: string;
  test(value: string): boolean;
}

/** Such a text is printed as it is, in backticks. */
const identityText = /^[\x21-\x5f\x61-\x7e]{1,1024}$/;

export const formats: Readonly<Record<FormatName, Format>> = {
  name: shown("1 to 64 of `a-z 0-9 . _ -`, a letter or digit first", /^[a-z0-9][a-z0-9._-]{0,63}$/),
  path: shown("1 to 4096 characters without control characters", /^[^\p{Cc}\p{Cs}]{1,4096}$/u),
  argument: hidden("at most 131072 characters without NUL", /^[^\0\p{Cs}]{0,131072}$/u),
  listen_host: { expected: "an IP address or a host name", sensitive: false, test: isHost },
  allowed_host: { expected: "a lower-case host or `host:port`, no wildcard", sensitive: false, test: isHostWithPort },
  private_host: { expected: "a host name, `*.` and a domain, or an IP address", sensitive: false, test: isPrivateHost },
  origin: { expected: "a lower-case `scheme://host[:port]`, no wildcard", sensitive: false, test: isOrigin },
  url: { expected: "an http: or https: URL without credentials or fragment", sensitive: true, test: isUpstreamUrl },
  webhook_url: {
    expected: "an https: URL, or an http: one of this machine, without credentials or fragment",
    sensitive: true,
    test: isWebhookUrl,
  },
  oauth_url: {
    expected: "an https: URL, or an http: one of this machine, without credentials, query or fragment",
    sensitive: false,
    test: (value) => isWebhookUrl(value) && /^[^?"\\`]+$/.test(value),
  },
  scope: shown(
    "1 to 256 printable ASCII characters without space, quote and backslash",
    /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/,
  ),
  claim: shown("1 to 256 printable ASCII characters", /^[\x21-\x7e]{1,256}$/),
  variable: hidden("the name of an environment variable: `A-Z 0-9 _`, no digit first", /^[A-Z_][A-Z0-9_]{0,127}$/),
  process_variable: shown("the name of an environment variable", /^[A-Za-z_][A-Za-z0-9_]{0,127}$/),
  header_name: shown("a header name", /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/),
  header_value: hidden(
    "at most 4096 printable ASCII characters",
    /^(?:[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?)?$/,
  ),
  key_hash: hidden("`sha256:` and 64 lower-case hex digits, as `gateway keys new` prints it", /^sha256:[0-9a-f]{64}$/),
  public_key: hidden("the base64 of a public key", /^[A-Za-z0-9+/]{1,512}={0,2}$/),
  digest: shown("`sha256:` and 64 lower-case hex digits", /^sha256:[0-9a-f]{64}$/),
  instant: {
    expected: "a time like `2026-12-31T00:00:00Z`",
    sensitive: false,
    test: (value) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value) && !Number.isNaN(Date.parse(value)),
  },
  identity_issuer: shown("1 to 1024 printable ASCII characters without space and backtick", identityText),
  identity_subject: {
    expected: "a URI or an e-mail address of at most 1024 printable ASCII characters without space and backtick",
    sensitive: false,
    test: (value) => identityText.test(value) && /^[^:@]+[:@]./.test(value),
  },
  identity_prefix: {
    expected: "a URL in its one spelling that ends in `/`, such as `https://ci.example/team/`",
    sensitive: false,
    test: isIdentityPrefix,
  },
  tool_prefix: shown("at most 64 of `A-Z a-z 0-9 _ . -`", /^[A-Za-z0-9_.-]{0,64}$/),
  tool_glob: shown("a tool name, in which `*` stands for any characters", /^[A-Za-z0-9_.*-]{1,128}$/),
  effect_key: {
    expected:
      "a program, perhaps with up to 5 subcommands and then one flag: `mytool`, `kubectl get`, `kubectl get --raw`",
    sensitive: false,
    test: isEffectKey,
  },
  argument_place: shown(
    "the name of an argument, or a JSON Pointer like `/steps/*/command`",
    /^(?:[^/\p{Cc}\p{Cs}][^\p{Cc}\p{Cs}]{0,255}|(?:\/(?:[^~/\p{Cc}\p{Cs}]|~[01]){0,256}){1,16})$/u,
  ),
  absolute_path: shown("an absolute path", /^\/[^\p{Cc}\p{Cs}]{0,4095}$/u),
  action_glob: shown(
    "the name of a tool or method, in which `*` stands for any characters",
    /^[A-Za-z0-9_.*/-]{1,128}$/,
  ),
  field_glob: shown(
    "`<tool>:<member>`, in which `*` stands for any characters",
    /^[A-Za-z0-9_.*-]{1,128}:[^\p{Cc}\p{Cs}]{0,256}$/u,
  ),
  rule_glob: shown("a rule's id, in which `*` stands for any characters", /^[a-z0-9.*-]{1,128}$/),
  model_name: shown("1 to 256 printable ASCII characters without spaces", /^[\x21-\x7e]{1,256}$/),
  provider_key: hidden("8 to 512 of `A-Z a-z 0-9 . _ ~ + / = -`", /^[A-Za-z0-9._~+/=-]{8,512}$/),
  printable: { expected: "printable text", sensitive: false, test: isPrintable },
  timestamp: {
    expected: "a time like `2026-12-31T00:00:00Z`",
    sensitive: false,
    test: (value) => toInstant(value) !== undefined,
  },
  taint: { expected: "1 to 64 of `a-z 0-9 -`, a letter first", sensitive: false, test: isTaint },
  meta_key: shown("1 to 256 printable ASCII characters", /^[\x21-\x7e]{1,256}$/),
};

const zonedTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** Converts RFC 3339 with a zone to `YYYY-MM-DDTHH:MM:SS.mmmZ`, which sorts by time. Undefined for any other text. */
export function toInstant(value: string | null): string | undefined {
  const time = value !== null && zonedTime.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? undefined : new Date(time).toISOString();
}

/** Visible characters between optional white space. */
function isPrintable(value: string): boolean {
  const trimmed = value.trim();
  return trimmed !== "" && !hasUnprintable(trimmed);
}

function shown(expected: string, pattern: RegExp): Format {
  return { expected, sensitive: false, pattern: pattern.source, test: (value) => pattern.test(value) };
}

function hidden(expected: string, pattern: RegExp): Format {
  return { expected, sensitive: true, pattern: pattern.source, test: (value) => pattern.test(value) };
}

const hostName = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,62})(?:\.[a-zA-Z0-9][a-zA-Z0-9-]{0,62}){0,31}$/;

function isHost(value: string): boolean {
  return isIP(value) !== 0 || (value.length <= 253 && hostName.test(value));
}

/** A top-level domain is nobody's own. */
function isPrivateHost(value: string): boolean {
  return value.startsWith("*.") ? /^[^.]+\../.test(value.slice(2)) && isHost(value.slice(2)) : isHost(value);
}

/** As a `Host` header names it: an IPv6 address in brackets. */
function isHostWithPort(value: string): boolean {
  const [, host, port] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(value) ?? [];
  if (host === undefined || value !== value.toLowerCase()) return false;
  if (port !== undefined && (Number(port) > 65_535 || Number(port) === 0)) return false;
  return host.startsWith("[") ? isIPv6(host.slice(1, -1)) : isHost(host);
}

function isOrigin(value: string): boolean {
  const [, host] = /^[a-z][a-z0-9+.-]{0,31}:\/\/(.+)$/.exec(value) ?? [];
  return host !== undefined && isHostWithPort(host);
}

/** Requires at least a whole host: `https://` ends in `/` as well. */
function isIdentityPrefix(value: string): boolean {
  const url = identityText.test(value) && value.endsWith("/") ? parsedUrl(value) : undefined;
  return url !== undefined && url.href === value && url.host !== "" && url.search === "" && url.hash === "";
}

function isUpstreamUrl(value: string): boolean {
  const url = value.length <= 4096 ? parsedUrl(value) : undefined;
  if (url === undefined) return false;
  if (url.protocol !== "http:" && url.protocol !== "https:") return false;
  // `#` with nothing behind it leaves `hash` empty.
  return url.username === "" && url.password === "" && !value.includes("#") && /^[\x21-\x7e]+$/.test(value);
}

/** Never sends notices over the network unencrypted. */
function isWebhookUrl(value: string): boolean {
  if (!isUpstreamUrl(value)) return false;
  const { protocol, hostname } = new URL(value);
  return protocol === "https:" || isLoopback(withoutBrackets(hostname));
}
