import type { BundleContent } from "../../core/evidence/bundle/build.ts";
import { type Manifest, manifestFile, readManifest, signManifest } from "../../core/evidence/bundle/manifest.ts";
import { recordFile } from "../../core/evidence/bundle/record-file.ts";
import { packTar, readTar } from "../../core/evidence/bundle/tar.ts";
import type { SigningKey } from "../../core/evidence/signing-key.ts";
import { canonicalJson } from "../../core/kernel/canonical-json.ts";
import { sha256Hex } from "../../core/kernel/digest.ts";
import type { Json } from "../../core/kernel/json.ts";
import {
  bundleOf,
  contentOf,
  type Draft,
  goodDrafts,
  keys,
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

/** The names and texts of a bundle's files, for a forger to change. */
export type OpenFiles = Map<string, Buffer>;

export type Edit<T> = (value: T) => void;

export const goodChain: readonly Placed[] = placeChain({ drafts: goodDrafts() });
export const trustedKeys: readonly string[] = [keys.first.public.text];
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

/** Whoever owns a key changes files, makes their digests right again and signs the manifest anew. */
export function resign(edit: Edit<OpenFiles>, editManifest?: Edit<Draft>, key: SigningKey = keys.second): Presented {
  const files = open();
  edit(files);
  const { manifest } = readManifest(files.get(manifestFile) ?? Buffer.alloc(0));
  const stated = structuredClone(manifest) as unknown as Draft;
  const others = [...files].filter(([name]) => name !== manifestFile);
  stated.files = Object.fromEntries(others.map(([name, content]) => [name, sha256Hex(content)]));
  editManifest?.(stated);
  files.set(manifestFile, Buffer.from(signManifest(stated as unknown as Manifest, key)));
  return present(packTar(files));
}

/** Somebody without a key changes files. */
export function meddle(edit: Edit<OpenFiles>): Presented {
  const files = open();
  edit(files);
  return present(packTar(files));
}

/** Somebody changes the bytes of the archive. */
export function distort(edit: (bundle: Buffer) => Buffer): Presented {
  return present(edit(bundleOf(goodChain)));
}

function open(): OpenFiles {
  return new Map([...readTar(bundleOf(goodChain))].map(([name, content]) => [name, Buffer.from(content)]));
}

/** Changes the JSON of a file, and writes it canonically. */
export function editJson(files: OpenFiles, name: string, edit: Edit<Draft>): void {
  const value = JSON.parse(String(files.get(name))) as Draft;
  edit(value);
  files.set(name, Buffer.from(canonicalJson(value)));
}

/** Changes the text of a file. */
export function editText(files: OpenFiles, name: string, edit: (text: string) => string): void {
  files.set(name, Buffer.from(edit(String(files.get(name)))));
}

/** Changes the list of record lines. */
export function editLines(files: OpenFiles, edit: (lines: string[]) => string[]): void {
  editText(files, recordFile, (text) =>
    edit(text.split("\n").slice(0, -1))
      .map((line) => `${line}\n`)
      .join(""),
  );
}

/** Changes one record where it stands; nothing follows from it. */
export function editLine(files: OpenFiles, seq: number, edit: Edit<Draft>): void {
  editLines(files, (lines) =>
    lines.map((line) => {
      const record = JSON.parse(line) as Draft;
      if (record.seq !== seq) return line;
      edit(record);
      return canonicalJson(record as Json);
    }),
  );
}
