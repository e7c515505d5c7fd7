import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TargetFile, Updater } from "tuf-js";
import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import { maxTrustedRoot } from "../config/trusted-root.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import { readTrustedRootFile, type TrustedRootFile } from "./trusted-root-entry.ts";
import { TufFetcher } from "./tuf-fetcher.ts";
import { describeTufFailure, tufRefusal } from "./tuf-refusal.ts";
import type { TufState } from "./tuf-state.ts";

/** Sigstore's public TUF repository. */
export const publicRepository = "https://tuf-repo-cdn.sigstore.dev";
const target = "trusted_root.json";
const roles = ["root", "timestamp", "snapshot", "targets"] as const;

/** A version of a role's metadata and the end of its validity: RFC 3339, milliseconds, UTC. */
export interface RoleVersion {
  readonly version: number;
  readonly expires: string;
}

/** A trusted root that a TUF repository vouches for now. */
export interface FetchedRoot {
  readonly root: TrustedRootFile;
  readonly state: TufState;
  readonly metadata: Readonly<Record<(typeof roles)[number], RoleVersion>>;
}

/** The start of an update: the state of the last one, or the bytes of root metadata that its user trusts. */
export type TufStart = Pick<TufState, "url" | "firstRoot" | "root"> & Partial<TufState>;

/** Returns the root metadata of Sigstore's public repository that the package `@sigstore/tuf` brings. */
export function shippedRoot(): Buffer {
  const seeds = createRequire(import.meta.url)("@sigstore/tuf/seeds.json") as Record<string, { "root.json": string }>;
  const seed = seeds[publicRepository];
  if (seed === undefined) throw new TypeError("shippedRoot: expected a root of the public repository");
  return Buffer.from(seed["root.json"], "base64");
}

/** Begins a first update with root metadata. */
export function startFrom(root: Buffer, url: string): TufStart {
  return { url, firstRoot: contentDigest(root), root: root.toString("utf8") };
}

/**
 * Fetches the trusted root of a TUF repository in the client workflow of the specification: each newer root signed by the
 * one before, nothing expired, no version below that of `start`, every length and digest as signed. At most 512 KiB a
 * root, 16 KiB a time stamp, 2 MB a snapshot, 5 MB of targets, 1 MiB of a trusted root that a gateway can load. Writes
 * nothing but a folder that it removes. Throws TRUSTED_ROOT_REFUSED and TUF_UNREACHABLE.
 */
export async function fetchTrustedRoot(start: TufStart, egress: EgressGuard): Promise<FetchedRoot> {
  const folder = await mkdtemp(join(tmpdir(), "gateway-trust-"));
  const fetcher = new TufFetcher(new URL(start.url), egress, folder);
  try {
    const { root: known, timestamp: lastTimestamp, snapshot: lastSnapshot } = start;
    for (const [role, text] of Object.entries({ root: known, timestamp: lastTimestamp, snapshot: lastSnapshot })) {
      if (text !== undefined) await writeFile(join(folder, `${role}.json`), text);
    }
    const updater = openUpdater(start.url, folder, fetcher);
    const found = await fetchMetadata(updater, fetcher);
    const file = await fetchTarget(updater, found, fetcher);
    const [root = "", timestamp = "", snapshot = "", targets = ""] = await Promise.all(
      roles.map((role) => readFile(join(folder, `${role}.json`), "utf8")),
    );
    const metadata = {
      root: versionOf("root", root),
      timestamp: versionOf("timestamp", timestamp),
      snapshot: versionOf("snapshot", snapshot),
      targets: versionOf("targets", targets),
    };
    const { url, firstRoot } = start;
    return { root: file, state: { url, firstRoot, root, timestamp, snapshot }, metadata };
  } finally {
    await fetcher.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function openUpdater(url: string, folder: string, fetcher: TufFetcher): Updater {
  try {
    const repository = { metadataBaseUrl: url, targetBaseUrl: `${url}/targets` };
    return new Updater({ ...repository, metadataDir: folder, targetDir: folder, fetcher });
  } catch (cause) {
    throw tufRefusal("root_unusable", "root.json", "root metadata of TUF, signed by its own keys", cause);
  }
}

async function fetchMetadata(updater: Updater, fetcher: TufFetcher): Promise<TargetFile> {
  const found = await updater.getTargetInfo(target).catch((cause) => {
    throw fetcher.fault ?? describeTufFailure(cause, fetcher.lastFile);
  });
  if (found === undefined) throw tufRefusal("file_missing", target, "a target of that name, got none");
  if (found.length <= maxTrustedRoot) return found;
  throw tufRefusal("too_large", target, `at most ${maxTrustedRoot} bytes, got ${found.length}`);
}

async function fetchTarget(updater: Updater, found: TargetFile, fetcher: TufFetcher): Promise<TrustedRootFile> {
  const file = await updater.downloadTarget(found).catch((cause) => {
    const expected = "the length and the digest that the metadata gives, got others";
    throw fetcher.fault ?? tufRefusal("target_mismatch", target, expected, cause);
  });
  const read = readTrustedRootFile(await readFile(file));
  if ("expected" in read) throw tufRefusal("target_malformed", target, read.expected);
  return read;
}

/** Reads metadata that was verified; the library accepts an end of validity that is no time. */
function versionOf(role: string, text: string): RoleVersion {
  const { version, expires } = (JSON.parse(text) as { readonly signed: RoleVersion }).signed;
  const end = new Date(expires);
  if (!Number.isNaN(end.getTime())) return { version, expires: end.toISOString() };
  throw tufRefusal("metadata_malformed", `${role}.json`, "a time at which it expires, got something else");
}

/** Refuses root metadata other than the one that the last update began with. Throws TRUSTED_ROOT_REFUSED. */
export function requireSameStart({ firstRoot }: TufState, root: Buffer): void {
  const got = contentDigest(root);
  if (got === firstRoot) return;
  throw tufRefusal("root_other", "root.json", `the root ${firstRoot} that the last update began with, got ${got}`);
}

/** Reads the file of `--root`. Throws TRUSTED_ROOT_REFUSED. */
export async function readRootFile(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new GatewayError("TRUSTED_ROOT_REFUSED", `\`${file}\` cannot be read: ${code ?? String(cause)}`, { cause });
  }
}
