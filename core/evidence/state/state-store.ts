import { setImmediate } from "node:timers/promises";
import { sha256Hex } from "../../action/canonical-json.ts";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, parseKept } from "../../action/json.ts";
import { HeldSnapshot } from "../../store/held-snapshot.ts";
import { backgroundPace, Pace, turnsOf } from "../../store/pace.ts";
import type { KeyStore } from "../key/key-folder.ts";
import { readKeyHistory } from "../key/key-history.ts";
import {
  checkpointAtKey,
  checkpointKey,
  durably,
  type EvidenceStore,
  recordKey,
  stateKey,
  statePageKey,
  statePageRange,
} from "../record/key-space.ts";
import type { EvidenceRecord } from "../record/record.ts";
import { type Reader, StoreView } from "../record/store-view.ts";
import { checkpointSigner, parseCheckpoint, type SignedCheckpoint, signCheckpoint } from "../tree/checkpoint.ts";
import { type ChainState, digestState, emptyState, parseState, StateChange } from "./chain-state.ts";
import { parseStatePage, StateMap, type StateProof, subjectPath } from "./state-map.ts";

interface StateStoreParts {
  readonly store: EvidenceStore;
  readonly keys: KeyStore;
  readonly ledger: { stateSecret(tenant: string): string };
}

/** A state, and what it says of one session and of its principal. */
export interface ShownState {
  readonly principal: StateProof;
  readonly session: StateProof;
  readonly state: ChainState;
}

/** The states that an export shows: of its own checkpoint, signed with it, and the one that was published last, if any. */
export interface ShownStates {
  readonly checkpoint: string;
  readonly published: string | undefined;
  readonly states: readonly ShownState[];
}

/** Records that one write covers. */
const recordsPerStep = 4_096;
/** Records since the published state that an export goes through without keeping what it finds. */
const maxUnkept = 262_144;

const queues = new WeakMap<EvidenceStore, Map<string, Promise<unknown>>>();

/**
 * The states of chains: what a checkpoint says of sessions and events beside the tree. Kept as of the checkpoint that was
 * published last, beside the chain; records since then are read when the next one is published or exported.
 */
export class StateStore {
  readonly #parts: StateStoreParts;

  constructor(parts: StateStoreParts) {
    this.#parts = parts;
  }

  /**
   * The latest checkpoint of a chain, signed with its state; it stays, durably, as that of its size. Runs in slices of two
   * milliseconds. Undefined for a chain without a checkpoint.
   */
  async publish(tenant: string): Promise<string | undefined> {
    const pace = new Pace({ ...backgroundPace, elapsedMs: () => performance.now() });
    return this.#alone(tenant, async () => {
      await using held = new HeldSnapshot(this.#parts.store);
      const view = new StoreView(this.#parts.store, held.snapshot);
      const checkpoint = parseCheckpoint((await view.get(checkpointKey(tenant))) ?? "");
      if (checkpoint === undefined) return undefined;
      const kept = (await view.get(checkpointAtKey(tenant, checkpoint.size))) ?? "";
      if (parseCheckpoint(kept)?.state !== undefined) return kept;
      await this.#advance(view, tenant, checkpoint, () => pace.rest());
      return this.#parts.store.get(checkpointAtKey(tenant, checkpoint.size));
    });
  }

  /** A snapshot for `show`, taken while no state is being written. */
  async hold(tenant: string): Promise<HeldSnapshot> {
    const { store } = this.#parts;
    return this.#alone(tenant, async () => {
      const base = await readState(store, tenant);
      const checkpoint = parseCheckpoint((await store.get(checkpointKey(tenant))) ?? "");
      const published = parseCheckpoint((await store.get(checkpointAtKey(tenant, base.size))) ?? "");
      const isPublished = published?.state !== undefined;
      if (checkpoint !== undefined && !(isPublished && checkpoint.size - base.size <= maxUnkept)) {
        await using held = new HeldSnapshot(store);
        await this.#advance(new StoreView(store, held.snapshot), tenant, checkpoint, restInTurns());
      }
      return new HeldSnapshot(store);
    });
  }

  /** The states of a checkpoint and of the one published before it, with what they say of a session and a principal. */
  async show(
    view: StoreView,
    tenant: string,
    checkpoint: SignedCheckpoint,
    about: { readonly session: string; readonly principal: string },
  ): Promise<ShownStates> {
    const base = await readState(view, tenant);
    const map = this.#openMap(view, tenant, base);
    const change = new StateChange(base);
    const rest = restInTurns();
    await readRecords(view, tenant, base.size, checkpoint.size, change, rest);
    const state = await change.apply(map, checkpoint.size, readLeaves(view, tenant), rest);
    const own = { ...(await prove(map, about)), state };
    const kept = await view.get(checkpointAtKey(tenant, base.size));
    const published = parseCheckpoint(kept ?? "")?.state === undefined ? undefined : kept;
    const note = await this.#sign(tenant, checkpoint, state);
    if (published === undefined || base.size === checkpoint.size) return { checkpoint: note, published, states: [own] };
    const before = { ...(await prove(this.#openMap(view, tenant, base), about)), state: base };
    return { checkpoint: note, published, states: [own, before] };
  }

  /**
   * Brings the kept state to a checkpoint, and keeps that signed with it. In steps, each written whole: a process that ends
   * early goes on from the last one.
   */
  async #advance(
    view: StoreView,
    tenant: string,
    checkpoint: SignedCheckpoint,
    rest: () => Promise<unknown>,
  ): Promise<void> {
    const { store } = this.#parts;
    let state = await readState(store, tenant);
    do {
      const map = this.#openMap(store, tenant, state);
      const change = new StateChange(state);
      const end = Math.min(state.size + recordsPerStep, checkpoint.size);
      await readRecords(view, tenant, state.size, end, change, rest);
      state = await change.apply(map, end, readLeaves(new StoreView(store), tenant), rest);
      const batch = store.batch();
      for (const [prefix, text] of map.changes()) {
        if (text === undefined) batch.del(statePageKey(tenant, prefix));
        else batch.put(statePageKey(tenant, prefix), text);
      }
      batch.put(stateKey(tenant), JSON.stringify(state));
      const isLast = end === checkpoint.size;
      if (isLast) batch.put(checkpointAtKey(tenant, end), await this.#sign(tenant, checkpoint, state));
      await batch.write(durably);
    } while (state.size < checkpoint.size);
  }

  #openMap(reader: Reader, tenant: string, { map }: ChainState): StateMap {
    const secret = this.#parts.ledger.stateSecret(tenant);
    return new StateMap(
      map,
      (prefix) => reader.get(statePageKey(tenant, prefix)),
      (path) => sha256Hex(`${secret}\n${path}`),
    );
  }

  /** The checkpoint with the state's digest, signed by the keys of its size. Rejects where one is not in the key folder. */
  async #sign(tenant: string, checkpoint: SignedCheckpoint, state: ChainState): Promise<string> {
    const { keys, store } = this.#parts;
    const history = await readKeyHistory(store, tenant, checkpoint.chain);
    if (typeof history === "string") throw unavailable(tenant, history);
    const signers = history.keysAt(checkpoint.size).map(async ({ id }) => {
      const key = await keys.find(id);
      if (key === undefined) throw unavailable(tenant, `is signed by key \`${id}\`, which is not in the key folder`);
      return checkpointSigner(checkpoint.chain, key);
    });
    return signCheckpoint({ ...checkpoint, state: digestState(state) }, await Promise.all(signers));
  }

  /** Runs one task of a tenant after another. */
  async #alone<T>(tenant: string, task: () => Promise<T>): Promise<T> {
    const queue = queues.get(this.#parts.store) ?? new Map<string, Promise<unknown>>();
    queues.set(this.#parts.store, queue);
    const run = (queue.get(tenant) ?? Promise.resolve()).then(task);
    const settled = run.catch(() => undefined);
    queue.set(tenant, settled);
    try {
      return await run;
    } finally {
      if (queue.get(tenant) === settled) queue.delete(tenant);
    }
  }
}

/** A rest where a turn's time is over, for work that somebody waits for. */
function restInTurns(): () => Promise<void> {
  const turns = turnsOf(setImmediate);
  return () => turns.spend(0);
}

async function prove(map: StateMap, about: { readonly session: string; readonly principal: string }) {
  return {
    principal: await map.prove(subjectPath("principal", about.principal)),
    session: await map.prove(subjectPath("session", about.session)),
  };
}

/** The state that is kept. Throws EVIDENCE_UNAVAILABLE for another than its checkpoint was signed with. */
async function readState(reader: Reader, tenant: string): Promise<ChainState> {
  const text = await reader.get(stateKey(tenant));
  if (text === undefined) return emptyState;
  const state = parseState(text);
  const kept = state && parseCheckpoint((await reader.get(checkpointAtKey(tenant, state.size))) ?? "")?.state;
  if (state === undefined || (kept !== undefined && kept !== digestState(state)))
    throw unavailable(tenant, "has a state that is damaged");
  return state;
}

function unavailable(tenant: string, what: string): GatewayError {
  return new GatewayError("EVIDENCE_UNAVAILABLE", `chain of tenant \`${tenant}\` ${what}`);
}

/** Follows the records from `from` up to, not including, `to`, but for pruned ones. */
async function readRecords(
  view: StoreView,
  tenant: string,
  from: number,
  to: number,
  change: StateChange,
  rest: () => Promise<unknown>,
): Promise<void> {
  for await (const [, text] of view.entries({ gte: recordKey(tenant, from), lt: recordKey(tenant, to) })) {
    const record = parseKept(text);
    if (!isJsonObject(record)) throw unavailable(tenant, "has a record that cannot be read");
    change.accept(record as unknown as EvidenceRecord);
    await rest();
  }
}

/** The paths of all leaves of a kept state. */
async function* readLeaves(view: StoreView, tenant: string): AsyncGenerator<string> {
  for await (const [, text] of view.entries(statePageRange(tenant))) {
    const page = parseStatePage(text);
    if (page === undefined) throw unavailable(tenant, "has a state that is damaged");
    for (const slot of page) if (Array.isArray(slot)) yield slot[0];
  }
}
