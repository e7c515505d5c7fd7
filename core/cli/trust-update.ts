import { resolve } from "node:path";
import type { Command } from "commander";
import { contentDigest } from "../action/canonical-json.ts";
import { formats } from "../config/format.ts";
import { quoteForeign } from "../distribution/file-name.ts";
import { entriesBeside, type TrustedRootEntry, type TrustedRootFile } from "../distribution/trusted-root-entry.ts";
import {
  type FetchedRoot,
  fetchTrustedRoot,
  publicRepository,
  readRootFile,
  requireSameStart,
  shippedRoot,
  startFrom,
  type TufStart,
} from "../distribution/trusted-root-fetch.ts";
import { pinRoot, readPinnedRoot } from "../distribution/trusted-root-file.ts";
import { readTufState } from "../distribution/tuf-state.ts";
import { EgressGuard } from "../egress/egress-guard.ts";
import { print } from "./print.ts";
import { checkPrivateHosts } from "./private-host.ts";

interface UpdateOptions {
  readonly url?: string;
  readonly root?: string;
  readonly check?: true;
  readonly privateHost: readonly string[];
  readonly json?: true;
}

/** `gateway trust update`. */
export async function updateTrustedRoot(file: string, options: UpdateOptions, command: Command): Promise<void> {
  checkPrivateHosts(options.privateHost, command);
  const { test, expected } = formats.oauth_url;
  if (options.url !== undefined && !test(options.url))
    command.error(`error: option '--url <url>': expected ${expected}`);
  const pinned = await readPinnedRoot(file);
  const start = await findStart(file, options);
  const egress = new EgressGuard({ privateHosts: options.privateHost, setting: "--private-host" });
  const fetched = await fetchTrustedRoot(start, egress);
  const isNew = pinned === undefined || !pinned.bytes.equals(fetched.root.bytes);
  if (options.check) process.exitCode = isNew ? 1 : 0;
  else await pinRoot(file, fetched);
  report(file, pinned, fetched, options);
}

async function findStart(file: string, { url, root }: UpdateOptions): Promise<TufStart> {
  const given = root === undefined ? undefined : await readRootFile(root);
  const address = url?.endsWith("/") ? url.slice(0, -1) : url;
  const state = await readTufState(file);
  if (state === undefined) return startFrom(given ?? shippedRoot(), address ?? publicRepository);
  if (given !== undefined) requireSameStart(state, given);
  return { ...state, url: address ?? state.url };
}

function report(file: string, pinned: TrustedRootFile | undefined, fetched: FetchedRoot, options: UpdateOptions): void {
  const { metadata, state } = fetched;
  const { bytes, entries } = fetched.root;
  const digest = contentDigest(bytes);
  const before = pinned === undefined ? null : contentDigest(pinned.bytes);
  const [added, removed] = [
    entriesBeside(entries, pinned?.entries ?? []),
    entriesBeside(pinned?.entries ?? [], entries),
  ];
  const changed = digest !== before;
  const result = !changed ? "unchanged" : options.check ? "a newer trusted root is there" : "updated";
  if (options.json) {
    const list = (each: readonly TrustedRootEntry[]): readonly object[] => each.map(renderEntry);
    const summary = { ok: !(changed && options.check), changed, file: resolve(file), url: state.url, digest };
    const change = { previous_digest: before, added: list(added), removed: list(removed) };
    print(JSON.stringify({ ...summary, ...change, metadata }));
    return;
  }
  const { root, timestamp } = metadata;
  const versions = `TUF root ${root.version}, time stamp ${timestamp.version} until ${timestamp.expires}`;
  print(`${file}: ${result}, ${digest}, ${versions}`);
  for (const entry of removed) print(`- ${describeEntry(entry)}`);
  for (const entry of added) print(`+ ${describeEntry(entry)}`);
}

function renderEntry({ kind, url, validFrom, validUntil, keys }: TrustedRootEntry): object {
  return { kind, url, valid_from: validFrom, valid_until: validUntil, keys };
}

function describeEntry({ kind, url, validFrom, validUntil, keys }: TrustedRootEntry): string {
  const from = validFrom === null ? "" : `, from ${validFrom}`;
  const until = validUntil === null ? "" : `, until ${validUntil}`;
  return `${kind} ${quoteForeign(url)}${from}${until}, ${keys.join(" ")}`;
}
