import { canonicalJson } from "../../kernel/canonical-json.ts";
import type { BundledRecord } from "../bundle/bundle-line.ts";
import type { RecordedPolicy } from "../record.ts";
import { isAction } from "../record-text.ts";

/** An extension that took part, and what vouched for it. */
export interface Provenance {
  readonly digest: string;
  readonly kind: string;
  readonly name: string;
  readonly signer: string | null;
  /** What the gateway made of the signer when it loaded the extension. */
  readonly trust: "signed" | "unsigned";
  readonly version: string;
}

/** Every extension that took part in judging these records, each once, in the order of their canonical texts. */
export function listProvenance(records: readonly BundledRecord[]): readonly Provenance[] {
  const found = new Map<string, Provenance>();
  for (const { record } of records) {
    const evaluation = isAction(record) ? record.evaluation : undefined;
    for (const policy of [...(evaluation?.policies ?? []), ...(evaluation?.shadow ?? [])]) {
      const provenance = provenanceOf(policy);
      found.set(canonicalJson({ ...provenance }), provenance);
    }
  }
  return [...found.keys()].sort().map((key) => found.get(key) as Provenance);
}

function provenanceOf({ digest, kind, name, signer, version }: RecordedPolicy): Provenance {
  return { digest, kind, name, signer, trust: signer === null ? "unsigned" : "signed", version };
}
