import { createHash } from "node:crypto";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { principalId } from "../../core/action/principal.ts";
import type { Role } from "../../core/action/role.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { runProgram } from "./program.ts";

/** Stored formats in the order of time, each named by what it was the first to hold. */
export const eras = ["signed", "reviewed", "metered", "watched", "plain", "packed", "sorted", "journaled"] as const;
export type Era = (typeof eras)[number];

/** Whether what `first` was the first to hold was there. */
export function isSince(era: Era, first: Era): boolean {
  return eras.indexOf(era) >= eras.indexOf(first);
}

export const people = ["agent", "other", "mika", "rita", "adam"] as const;
export type Person = (typeof people)[number];

export const roleOf: Readonly<Record<Person, Role>> = {
  agent: "operator",
  other: "operator",
  mika: "operator",
  rita: "operator",
  adam: "admin",
};

/** What a gateway knew when it was stopped, as its own admin port told it. */
export interface KnownState {
  /** RFC 3339, milliseconds, UTC. */
  readonly stopped_at: string;
  readonly sessions: readonly { readonly id: string; readonly label?: string; readonly records: number }[];
  readonly approvals: readonly { readonly id: string; readonly state: string }[];
  /** The ids of emergency approvals that owe a post-mortem. */
  readonly break_glass: readonly string[];
  /** The ids of notices that a webhook is owed, and of those that it was never told. */
  readonly owed: readonly string[];
  readonly dead_letters: readonly string[];
  /** The ids of sessions that stand stopped. */
  readonly killed: readonly string[];
  readonly usage: { readonly requests: number; readonly input_tokens: number; readonly output_tokens: number } | null;
  readonly tickets: readonly { readonly id: string; readonly state: string; readonly uses: number }[];
  /** A ticket of which one use is left over, as its holder presents it. */
  readonly token: string | null;
  readonly manifests: readonly { readonly task: string }[];
  /** What each session met. */
  readonly taints: readonly { readonly session: string; readonly taints: readonly string[] }[];
}

/** Whose sessions were stopped: since `packed`, a stop also holds the principal's other sessions. */
export function stoppedPerson(era: Era): Person {
  return isSince(era, "packed") ? "mika" : "agent";
}

/** The key of somebody in every stored state: who reads them must be let in, years later too. */
export function storedKey(person: Person): string {
  return `test-${createHash("sha256").update(`stored-state ${person}`).digest("base64url")}`;
}

/** What the webhook's notices are signed with. */
export const storedSecret: string = `whsec_${createHash("sha256").update("stored-state webhook").digest("base64")}`;

export function storedKeyHash(person: Person): string {
  return `sha256:${createHash("sha256").update(storedKey(person)).digest("hex")}`;
}

export function storedPrincipal(person: Person): string {
  return principalId("acme", storedKeyHash(person));
}

export function storedStatePath(era: Era): string {
  return join(repositoryRoot, "test", "fixture", "stored", `${era}.tgz`);
}

/** A folder as the gateway of that time left it, in a new folder that is the caller's to remove. */
export async function unpackStoredState(era: Era): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `stored-${era}-`));
  const { code, stderr } = await runProgram("tar", ["-xzf", storedStatePath(era), "-C", folder]);
  if (code !== 0) throw new Error(`tar: ${stderr}`);
  return folder;
}

export async function readKnownState(folder: string): Promise<KnownState> {
  return JSON.parse(await readFile(join(folder, "known.json"), "utf8")) as KnownState;
}
