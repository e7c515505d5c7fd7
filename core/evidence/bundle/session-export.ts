import { setImmediate } from "node:timers/promises";
import { sha256Hex } from "../../action/canonical-json.ts";
import { GatewayError } from "../../action/error.ts";
import type { Clock } from "../../action/id.ts";
import type { JsonObject } from "../../action/json.ts";
import { countRecords, readSessionSeqs } from "../chain/session-record.ts";
import type { KeyStore } from "../key/key-folder.ts";
import { readKeyHistory } from "../key/key-history.ts";
import type { Disclosure, PrivateField } from "../private/private-field.ts";
import { checkpointAtRange, checkpointKey, type EvidenceStore, recordKey } from "../record/key-space.ts";
import { isChainFault } from "../record/reason.ts";
import type { ActionRecord } from "../record/record.ts";
import { isAction, readRecord } from "../record/record-text.ts";
import { type Reader, readFault, StoreView } from "../record/store-view.ts";
import { StateStore } from "../state/state-store.ts";
import { parseCheckpoint, type SignedCheckpoint } from "../tree/checkpoint.ts";
import { leafHash, verifyInclusion } from "../tree/merkle.ts";
import { TileReader } from "../tree/tile-reader.ts";
import {
  type BundleContent,
  bundleLines,
  type ShownField,
  type ShownFields,
  sealBundle,
  type WithheldField,
  type Witnessed,
  withhold,
} from "./build.ts";
import type { BundledRecord } from "./bundle-line.ts";
import { principalOf } from "./completeness.ts";

/** The part of the ledger that an export uses. */
interface ExportedLedger {
  recordEvent(tenant: string, kind: "admin", detail: JsonObject): Promise<void>;
  disclosure(record: ActionRecord, reader: Reader): Promise<Disclosure>;
  stateSecret(tenant: string): string;
}

interface SessionExportParts {
  readonly store: EvidenceStore;
  readonly keys: KeyStore;
  readonly ledger: ExportedLedger;
  readonly clock: Clock;
}

export interface ExportRequest {
  readonly session: string;
  /** The id of the principal who asks. It is recorded before anything is read. */
  readonly by: string;
  /** False withholds every field. */
  readonly disclose: boolean;
  readonly redact: readonly WithheldField[];
}

/** A session's evidence as it stands at one moment. */
export interface CollectedSession {
  readonly content: BundleContent;
  readonly records: readonly BundledRecord[];
}

const maxRecords = 20_000;

/** Exports the evidence of one session, with everything needed to verify it without the gateway. */
export class SessionExport {
  readonly #parts: SessionExportParts;
  readonly #states: StateStore;

  constructor(parts: SessionExportParts) {
    this.#parts = parts;
    this.#states = new StateStore(parts);
  }

  /**
   * The session's bundle, signed by the tenant's key. Throws NOT_FOUND for a session this tenant does not have,
   * EXPORT_BOUND for one of more than 20,000 records, INVALID_PARAMS for a redaction that fits nothing, and
   * EVIDENCE_UNAVAILABLE where the store contradicts itself.
   */
  async bundle(tenant: string, request: ExportRequest): Promise<Buffer> {
    const { content } = await this.collect(tenant, "evidence.export", request);
    const { keyId } = content;
    const key = await this.#parts.keys.find(keyId);
    if (key === undefined) throw unavailable(tenant, `is signed by key \`${keyId}\`, which is not in the key folder`);
    const lines: string[] = [];
    for (const line of bundleLines(content)) {
      lines.push(line);
      // Requests are served in between.
      if (lines.length % atOnce === 0) await setImmediate();
    }
    return sealBundle(lines, key);
  }

  /** Collects the content of a bundle. Throws like `bundle`. */
  async collect(tenant: string, action: string, request: ExportRequest): Promise<CollectedSession> {
    const { store, ledger, clock } = this.#parts;
    const { session, by } = request;
    try {
      await countRecords(store, tenant, session);
      // Before the record below: whatever the checkpoint does not cover is younger than this.
      const created = new Date(clock()).toISOString();
      await ledger.recordEvent(tenant, "admin", { action, principal: by, session });
      await using held = await this.#states.hold(tenant);
      const view = new StoreView(store, held.snapshot);
      return await this.#read(view, { tenant, session, created }, request);
    } catch (error) {
      throw readFault(error);
    }
  }

  async #read(view: StoreView, named: Named, request: ExportRequest): Promise<CollectedSession> {
    const { tenant, session } = named;
    // Again: it may have been pruned since it was asked for.
    await countRecords(view, tenant, session);
    const note = (await view.get(checkpointKey(tenant))) ?? "";
    const checkpoint = parseCheckpoint(note);
    if (checkpoint === undefined) throw unavailable(tenant, "has no checkpoint");
    const history = await readKeyHistory(this.#parts.store, tenant, checkpoint.chain);
    if (typeof history === "string") throw unavailable(tenant, history);
    const seqs = await readSessionSeqs(view, tenant, session, maxRecords);
    if (seqs === undefined) throw tooMany();
    const read = await readRecords(view, tenant, seqs);
    const principal = principalOf(read) ?? "";
    const shown = await this.#states.show(view, tenant, checkpoint, { session, principal });
    const content = {
      ...named,
      texts: read.map(({ text }) => text),
      checkpoint: shown.checkpoint,
      states: shown.states,
      proofs: await this.#prove(view, tenant, checkpoint, read),
      keyId: history.keysAt(checkpoint.size).at(-1)?.id ?? "",
      fields: withhold(await this.#readFields(view, read, request.disclose), request.redact),
    };
    const witnessed = await readWitnessed(view, tenant, checkpoint, shown.published);
    return { content: witnessed === undefined ? content : { ...content, witnessed }, records: read };
  }

  /** Proofs of the records, and of the last under the checkpoint. A record that its proof does not fit is not shown. */
  async #prove(
    view: StoreView,
    tenant: string,
    { size, root }: SignedCheckpoint,
    read: readonly BundledRecord[],
  ): Promise<ReadonlyMap<number, readonly string[]>> {
    const tiles = new TileReader(view, tenant);
    const proofs = new Map<number, readonly string[]>();
    proofs.set(size - 1, hexOf(await tiles.inclusionProof(size - 1, size)));
    for (const { record, hash } of read) {
      const { seq } = record;
      const proof = await tiles.inclusionProof(seq, size);
      if (!verifyInclusion(leafHash(hash), seq, size, proof, root)) {
        throw unavailable(tenant, `does not hold record ${seq} as its tree says`);
      }
      proofs.set(seq, hexOf(proof));
    }
    return proofs;
  }

  async #readFields(
    view: StoreView,
    read: readonly BundledRecord[],
    disclose: boolean,
  ): Promise<ReadonlyMap<number, ShownFields>> {
    const fields = new Map<number, ShownFields>();
    for (const { record } of read) {
      if (!isAction(record)) continue;
      const kept = await this.#parts.ledger.disclosure(record, view);
      if (Object.keys(kept).length > 0) fields.set(record.seq, showFields(kept, disclose));
    }
    return fields;
  }
}

interface Named {
  readonly tenant: string;
  readonly session: string;
  readonly created: string;
}

interface ReadRecord extends BundledRecord {
  readonly text: string;
}

/** Records that are read or written without a turn for others. */
const atOnce = 64;

async function readRecords(view: StoreView, tenant: string, seqs: readonly number[]): Promise<readonly ReadRecord[]> {
  const read: ReadRecord[] = [];
  for (let at = 0; at < seqs.length; at += atOnce) {
    for (const record of await readSome(view, tenant, seqs.slice(at, at + atOnce))) read.push(record);
  }
  return read;
}

async function readSome(view: StoreView, tenant: string, seqs: readonly number[]): Promise<readonly ReadRecord[]> {
  const texts = await view.getMany(seqs.map((seq) => recordKey(tenant, seq)));
  return texts.map((text, at) => {
    const record = text === undefined ? undefined : readRecord(text);
    if (text === undefined || record === undefined || isChainFault(record) || record.seq !== seqs[at]) {
      throw unavailable(tenant, `does not hold record ${seqs[at]} as its indexes say`);
    }
    return { record, text, hash: sha256Hex(text) };
  });
}

/** The checkpoint that was published last; without states, the latest that stays: what a witness, if there is one, has seen. */
async function readWitnessed(
  view: StoreView,
  tenant: string,
  { size }: SignedCheckpoint,
  published: string | undefined,
): Promise<Witnessed | undefined> {
  const [latest] = await view.values({ ...checkpointAtRange(tenant), reverse: true, limit: 1 });
  const note = published ?? latest;
  const first = note === undefined ? undefined : parseCheckpoint(note)?.size;
  if (note === undefined || first === undefined) return undefined;
  return { note, proof: hexOf(await new TileReader(view, tenant).consistencyProof(first, size)) };
}

function showFields(kept: Disclosure, disclose: boolean): ShownFields {
  const members = Object.entries(kept).map(([member, fields]) => {
    return [member, disclose ? fields.map(showField) : fields.map(({ commitment }) => ({ commitment }))];
  });
  return Object.fromEntries(members) as ShownFields;
}

/** A field of which not all is kept cannot be checked: its commitment alone is shown. */
function showField({ commitment, name, salt, value }: PrivateField): ShownField {
  if (name === undefined || salt === undefined || value === undefined) return { commitment };
  return { commitment, name, salt, value };
}

function hexOf(hashes: readonly Buffer[]): string[] {
  return hashes.map((hash) => hash.toString("hex"));
}

function unavailable(tenant: string, what: string): GatewayError {
  return new GatewayError("EVIDENCE_UNAVAILABLE", `chain of tenant \`${tenant}\` ${what}`);
}

function tooMany(): GatewayError {
  return new GatewayError("EXPORT_BOUND", `expected at most ${maxRecords} records, got more`);
}
