import { singleHeader } from "../../identity/header.ts";
import { GatewayError } from "../../kernel/error.ts";

/** The versions of the messages API that are served; the first is that of a request which names none. */
export const supportedVersions = ["2023-06-01", "2026-10-21"] as const;
export type MessagesVersion = (typeof supportedVersions)[number];

/**
 * The version of the messages API a request asks for: `provider-version` and `anthropic-version` are two names of one
 * header. Throws DUPLICATE_HEADER, VERSION_CONFLICT where they differ, and VERSION_UNSUPPORTED.
 */
export function messagesVersion(rawHeaders: readonly string[]): MessagesVersion {
  const ours = singleHeader(rawHeaders, "provider-version");
  const theirs = singleHeader(rawHeaders, "anthropic-version");
  if (ours !== undefined && theirs !== undefined && ours !== theirs) {
    throw new GatewayError("VERSION_CONFLICT", "expected `provider-version` and `anthropic-version` to say the same");
  }
  const asked = ours ?? theirs ?? supportedVersions[0];
  const version = supportedVersions.find((each) => each === asked);
  if (version !== undefined) return version;
  throw new GatewayError(
    "VERSION_UNSUPPORTED",
    `expected ${supportedVersions.map((each) => `\`${each}\``).join(" or ")}, got \`${asked.slice(0, 32)}\``,
  );
}
