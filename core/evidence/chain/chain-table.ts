import { GatewayError } from "../../action/error.ts";
import type { Random } from "../../action/id.ts";
import { checkTenant, listTenants } from "../../store/key-range.ts";
import type { KeyStore } from "../key/key-folder.ts";
import type { WrappingKey, WrappingKeyStore } from "../key/wrapping-key.ts";
import type { EvidenceStore } from "../record/key-space.ts";
import { checkpointSigner, type NoteSigner } from "../tree/checkpoint.ts";
import { TileTree } from "../tree/merkle.ts";
import { ApprovalTracker } from "./approval-summary.ts";
import { loadChain } from "./chain-load.ts";
import { type ChainHead, emptyHead } from "./chain-walk.ts";
import type { HighWater } from "./high-water.ts";
import type { OuterMark } from "./outer-mark.ts";

/** One tenant's chain as far as it is sealed; what is sealed may still wait for the disk. */
export interface EvidenceChain {
  readonly tenant: string;
  readonly id: string;
  head: ChainHead;
  /** Signs what is sealed from now on. */
  signer: NoteSigner;
  /** Over what was handed to the disk: the group commit adds to it. */
  tree: TileTree;
  /** Encrypts the private fields of its records. */
  wrapping: WrappingKey;
  readonly approvals: ApprovalTracker;
}

interface ChainTableParts {
  readonly store: EvidenceStore;
  readonly highWater: HighWater;
  readonly outerMark: OuterMark | null;
  readonly keys: KeyStore;
  readonly wrappingKeys: WrappingKeyStore;
  readonly random: Random;
}

export interface ChainStatus {
  readonly tenant: string;
  /** Empty for a refused chain whose name is not known. */
  readonly chain: string;
  /** −1 for a chain that holds nothing yet. */
  readonly seq: number;
  readonly head: string;
  /** `failed`: no tenant can write until a repair succeeds. `refused`: this chain is not sound. */
  readonly state: "ready" | "failed" | "refused";
  readonly reason?: string;
}

const maxTenants = 10_000;
const chainIdBytes = 16;

/** The chains of a store by tenant, and the tenants whose chain cannot be trusted. */
export class ChainTable {
  readonly #parts: ChainTableParts;
  readonly #highWater: HighWater;
  readonly #chains = new Map<string, EvidenceChain>();
  readonly #refused = new Map<string, string>();
  readonly #opening = new Map<string, Promise<EvidenceChain>>();
  #closedBecause: string | undefined;

  constructor(parts: ChainTableParts) {
    this.#parts = parts;
    this.#highWater = parts.highWater;
  }

  /**
   * Reads every chain back from the store, and raises the marks of those that are sound and ahead of theirs.
   * A tenant whose chain is not sound is refused from then on. Rejects when the marks cannot be written.
   */
  async load(): Promise<void> {
    const outer = this.#parts.outerMark?.tenants ?? [];
    const tenants = new Set([...this.#highWater.marks.keys(), ...outer, ...(await listTenants(this.#parts.store))]);
    for (const tenant of tenants) await this.#loadTenant(tenant);
  }

  /** The tenant's chain where it is open and sound; undefined where only `open` can say. */
  peek(tenant: string): EvidenceChain | undefined {
    return this.#refused.has(tenant) ? undefined : this.#chains.get(tenant);
  }

  /** The tenant's chain; a new one is named, durably, first. Throws EVIDENCE_UNAVAILABLE where the tenant is refused. */
  async open(tenant: string): Promise<EvidenceChain> {
    const chain = this.peek(tenant);
    if (chain !== undefined) return chain;
    this.checkTrusted(tenant);
    return this.#openNew(tenant);
  }

  /** The chain of a tenant that has one. Throws NOT_FOUND, or EVIDENCE_UNAVAILABLE where the tenant is refused. */
  get(tenant: string): EvidenceChain {
    this.checkTrusted(tenant);
    const chain = this.#chains.get(tenant);
    if (chain === undefined) throw new GatewayError("NOT_FOUND", "the tenant has no evidence");
    return chain;
  }

  /** Throws EVIDENCE_UNAVAILABLE for a tenant whose chain is not sound. */
  checkTrusted(tenant: string): void {
    const reason = this.#refused.get(tenant);
    if (reason !== undefined) throw new GatewayError("EVIDENCE_UNAVAILABLE", reason);
  }

  /** Refuses a tenant until a start finds its chain sound. */
  refuse(tenant: string, reason: string): void {
    this.#refused.set(tenant, reason);
  }

  /** Lets no chain begin any more: a tenant that seems new may be one whose chain was taken away. */
  refuseNew(reason: string): void {
    this.#closedBecause = reason;
  }

  get refusals(): ReadonlyMap<string, string> {
    return this.#refused;
  }

  /** Tenants whose chain is sound. */
  get tenants(): readonly string[] {
    return [...this.#chains.keys()].filter((tenant) => !this.#refused.has(tenant));
  }

  status(failed: boolean): readonly ChainStatus[] {
    const tenants = new Set([...this.#chains.keys(), ...this.#refused.keys()]);
    return [...tenants].sort().map((tenant) => {
      const chain = this.#chains.get(tenant);
      const head = chain?.head ?? this.#markOf(tenant);
      const reason = this.#refused.get(tenant);
      const id = chain?.id ?? this.#highWater.marks.get(tenant)?.chain ?? "";
      const place = { tenant, chain: id, seq: head.seq, head: head.hash };
      if (reason !== undefined) return { ...place, state: "refused", reason };
      return { ...place, state: failed ? "failed" : "ready" };
    });
  }

  #markOf(tenant: string): ChainHead {
    const mark = this.#highWater.marks.get(tenant);
    return mark === undefined ? emptyHead : { seq: mark.seq, hash: mark.head };
  }

  async #loadTenant(tenant: string): Promise<void> {
    const mark = this.#highWater.marks.get(tenant);
    const loaded = await loadChain(this.#parts, tenant, mark);
    const found = { tenant, id: mark?.chain, head: "refused" in loaded ? this.#markOf(tenant) : loaded.head };
    const older = await this.#parts.outerMark?.findContradiction(this.#parts.store, found);
    if (older !== undefined) return this.refuse(tenant, older);
    if ("refused" in loaded) return this.refuse(tenant, loaded.refused);
    const { head } = loaded;
    const id = mark?.chain ?? "";
    if (head.seq > (mark?.seq ?? -1)) {
      await this.#highWater.advance([{ tenant, chain: id, seq: head.seq, head: head.hash }]);
    }
    const known = this.#chains.get(tenant);
    if (known === undefined) this.#chains.set(tenant, { tenant, id, ...loaded, approvals: new ApprovalTracker() });
    else {
      known.approvals.stop();
      Object.assign(known, loaded);
    }
  }

  /** Two first actions of a tenant at once share one chain. */
  #openNew(tenant: string): Promise<EvidenceChain> {
    const pending = this.#opening.get(tenant) ?? this.#create(tenant).finally(() => this.#opening.delete(tenant));
    this.#opening.set(tenant, pending);
    return pending;
  }

  /** The mark comes before the first record: a tenant with records and no mark has lost its mark. */
  async #create(tenant: string): Promise<EvidenceChain> {
    checkTenant(tenant);
    if (this.#closedBecause !== undefined) throw new GatewayError("EVIDENCE_UNAVAILABLE", this.#closedBecause);
    if (this.#chains.size + this.#opening.size >= maxTenants) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", `expected at most ${maxTenants} tenants in one data folder`);
    }
    const id = Buffer.from(this.#parts.random(chainIdBytes)).toString("base64url");
    const keys = await this.#mark(tenant, id);
    const chain: EvidenceChain = {
      tenant,
      id,
      head: emptyHead,
      tree: new TileTree(),
      ...keys,
      approvals: new ApprovalTracker(),
    };
    this.#chains.set(tenant, chain);
    return chain;
  }

  /** Resolves when no new chain is being made. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#opening.values());
  }

  /** Makes the keys of a new chain, and its mark. */
  async #mark(tenant: string, chain: string): Promise<Pick<EvidenceChain, "signer" | "wrapping">> {
    try {
      const signer = checkpointSigner(chain, await this.#parts.keys.create());
      const wrapping = await this.#parts.wrappingKeys.create(chain);
      await this.#highWater.advance([{ tenant, chain, seq: emptyHead.seq, head: emptyHead.hash }]);
      return { signer, wrapping };
    } catch (cause) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", "a new chain cannot be marked; see the log", { cause });
    }
  }
}
