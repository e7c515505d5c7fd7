import { canonicalJson } from "../../core/action/canonical-json.ts";
import type { SigningKey } from "../../core/action/signing-key.ts";
import { type BundleContent, sealBundle } from "../../core/evidence/bundle/build.ts";
import {
  bundleOf,
  contentOf,
  type Draft,
  decision,
  goodDrafts,
  keys,
  outcome,
  type Placed,
  placeChain,
  witnessOf,
} from "./evidence-world.ts";

/** A bundle as it reaches an auditor, and what the auditor brings along. */
export interface Presented {
  readonly bundle: Buffer;
  /** Trusted first keys, base64. */
  readonly keys: readonly string[];
  readonly witness?: string;
  readonly maxAgeSeconds?: number;
}

/** The lines of a bundle, for a forger to change: the first, those of the records, and the last. */
export interface OpenLines {
  head: string;
  entries: string[];
  seal: string;
}

export type Edit<T> = (value: T) => void;

export const goodChain: readonly Placed[] = placeChain({ drafts: goodDrafts() });
export const trustedKeys: readonly string[] = [keys.first.public.text];
/** The same chain with an action that has facts: its decision is record 5, its outcome record 6. */
export const factChain: readonly Placed[] = placeChain({
  drafts: goodDrafts().toSpliced(5, 0, decision("fact-1", "allow"), outcome("fact-1", "success")),
});
/** The witness has the chain as it was at these sizes; it goes on pushing after the export. */
export const goodWitness: string = witnessOf(goodChain, [1, 10, 17]);

export function present(bundle: Buffer, changed: Partial<Presented> = {}): Presented {
  return { bundle, keys: trustedKeys, witness: goodWitness, ...changed };
}

/** Whoever owns the keys makes another history: drafts and records change, everything after follows from them. */
export function forgeChain(
  edit: (drafts: Draft[]) => Draft[],
  editRecord?: (record: Draft, seq: number) => void,
): Presented {
  const plan = { drafts: edit(goodDrafts()) };
  return present(bundleOf(placeChain(editRecord === undefined ? plan : { ...plan, edit: editRecord })));
}

/** Whoever owns the keys exports the true chain falsely. */
export function misstate(edit: (content: BundleContent) => BundleContent): Presented {
  return present(bundleOf(goodChain, edit(contentOf(goodChain))));
}

/** Whoever owns a key changes lines, and seals them anew. */
export function resign(edit: Edit<OpenLines>, key: SigningKey = keys.second, chain = goodChain): Presented {
  const lines = open(chain);
  edit(lines);
  return present(sealBundle([lines.head, ...lines.entries], key));
}

/** Somebody without a key changes lines. */
export function meddle(edit: Edit<OpenLines>): Presented {
  const lines = open();
  edit(lines);
  const all = [lines.head, ...lines.entries, lines.seal];
  return present(Buffer.from(all.map((line) => `${line}\n`).join("")));
}

/** Somebody changes the bytes of the bundle. */
export function distort(edit: (bundle: Buffer) => Buffer): Presented {
  return present(edit(bundleOf(goodChain)));
}

function open(chain = goodChain): OpenLines {
  const lines = bundleOf(chain).toString("utf8").split("\n");
  return { head: String(lines[0]), entries: lines.slice(1, -2), seal: String(lines.at(-2)) };
}

/** The line after its JSON was changed, written canonically. */
export function editJson(line: string, edit: Edit<Draft>): string {
  const value = JSON.parse(line) as Draft;
  edit(value);
  return canonicalJson(value);
}

export function editHead(lines: OpenLines, edit: Edit<Draft>): void {
  lines.head = editJson(lines.head, edit);
}

/** Changes the text of the line of one record. */
export function editText(lines: OpenLines, seq: number, edit: (line: string) => string): void {
  lines.entries = lines.entries.map((line) => (line.includes(`"seq":${seq},`) ? edit(line) : line));
}

/** Changes the line of one record; nothing follows from it. */
export function editEntry(lines: OpenLines, seq: number, edit: Edit<Draft>): void {
  editText(lines, seq, (line) => editJson(line, edit));
}

/** Changes one record where it stands; nothing follows from it. */
export function editRecord(lines: OpenLines, seq: number, edit: Edit<Draft>): void {
  editEntry(lines, seq, ({ record }) => edit(record as Draft));
}
