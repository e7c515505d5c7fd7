import type { BatchOperation } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import { can } from "../action/role.ts";
import { type ArgumentChange, diffArguments } from "../approval/argument-diff.ts";
import { type DefinitionStore, definitionLimits, putDefinition, recordedReview } from "./definition-store.ts";
import {
  type DefinitionReview,
  entryKey,
  type Pin,
  type PinHead,
  pinHead,
  type ReviewHead,
  reviewHead,
} from "./entry.ts";
import type { TenantDefinitions } from "./tenant-definitions.ts";

interface ReviewOptions {
  readonly store: DefinitionStore;
  /** True where the principal whose request met a definition first may approve it. */
  readonly allowSelfReview: boolean;
  /** Called for the upstream of a definition that was approved, once that is in force. */
  readonly onApproved: (upstream: string) => void;
}

/** A withheld definition beside the pinned one that it is compared with; `before` is null where there is none. */
export interface DefinitionComparison {
  readonly review: ReviewHead;
  readonly before: JsonObject | null;
  readonly after: JsonObject;
  readonly changes: readonly ArgumentChange[];
  /** The number of further changes; 0 where the list is complete. */
  readonly omitted: number;
}

interface ReviewPage {
  readonly items: readonly ReviewHead[];
  /** The cursor of the next page; null after the last. */
  readonly next: string | null;
}

/** Pointers named in the record of an approval. */
const maxPointers = 50;

/** The review of withheld definitions by people. A review is in force once it is durable, with its record. */
export class DefinitionReviews {
  readonly #options: ReviewOptions;

  constructor(options: ReviewOptions) {
    this.#options = options;
  }

  /** Lists the reviews of a tenant in a state, by id, after the id `after`. */
  list(tenant: string, state: DefinitionReview["state"], limit: number, after = ""): Promise<ReviewPage> {
    return this.#options.store.inTurn(tenant, async (known) => {
      const found = [...known.reviews].filter((each) => each.state === state && each.id > after);
      found.sort((one, other) => (one.id < other.id ? -1 : 1));
      const items = found.slice(0, limit);
      return { items, next: found.length > limit ? (items.at(-1)?.id ?? null) : null };
    });
  }

  /** Compares a withheld definition with the pinned one. Rejects with NOT_FOUND. */
  compare(tenant: string, id: string): Promise<DefinitionComparison> {
    return this.#options.store.inTurn(tenant, async (known) =>
      this.#compare(tenant, await this.#read(tenant, known, id)),
    );
  }

  /**
   * Pins a withheld definition: agents are shown it again. It takes a name that it claims from the tool of another upstream,
   * whose own definition is then reviewed, and retires the tools that it replaces. Rejects with NOT_FOUND, with
   * APPROVAL_SELF_REVIEW, with DEFINITION_STATE where its upstream has too many pins, and with EVIDENCE_UNAVAILABLE.
   */
  async approve(id: string, reviewer: Principal, comment: string | undefined): Promise<ReviewHead> {
    checkRole(reviewer);
    const { store, onApproved } = this.#options;
    const { tenant } = reviewer;
    const approved = await store.inTurn(tenant, async (known) => {
      const review = await this.#read(tenant, known, id);
      this.#checkReviewer(review, reviewer);
      checkRoom(known, review);
      const pin = pinOf(review, reviewer, store.now);
      const displaced = [...known.named(review.exposed_name)].filter(({ upstream }) => upstream !== review.upstream);
      const retired = await this.#retire(tenant, review);
      const operations: readonly BatchOperation[] = [
        ...displaced.map((each): BatchOperation => ({ type: "del", key: entryKey(tenant, "pin", each) })),
        ...retired.map((each) => putDefinition(tenant, "pin", each)),
        putDefinition(tenant, "pin", pin),
        { type: "del", key: entryKey(tenant, "review", review) },
      ];
      await store.record(tenant, await this.#recorded(review, reviewer, comment, displaced), operations);
      for (const each of displaced) known.removePin(each);
      for (const each of [...retired, pin]) known.putPin(pinHead(each));
      known.removeReview(review);
      return reviewHead(review);
    });
    onApproved(approved.upstream);
    return approved;
  }

  /**
   * Denies a withheld definition: it stays withheld, and is not asked about again. Rejects with NOT_FOUND, with
   * DEFINITION_STATE where it is denied already, and with EVIDENCE_UNAVAILABLE.
   */
  deny(id: string, reviewer: Principal, comment: string | undefined): Promise<ReviewHead> {
    checkRole(reviewer);
    const { store } = this.#options;
    const { tenant } = reviewer;
    return store.inTurn(tenant, async (known) => {
      const review = await this.#read(tenant, known, id);
      if (review.state === "denied")
        throw new GatewayError("DEFINITION_STATE", "`denied`", { data: { state: "denied" } });
      const commented = comment === undefined ? {} : { comment };
      const denied: DefinitionReview = {
        ...review,
        state: "denied",
        reviewer: reviewer.id,
        reviewed_at: store.now,
        ...commented,
      };
      const detail = { action: "definition.deny", principal: reviewer.id, ...recordedReview(review), ...commented };
      await store.record(tenant, detail, [putDefinition(tenant, "review", denied)]);
      known.putReview(reviewHead(denied));
      return reviewHead(denied);
    });
  }

  async #read(tenant: string, known: TenantDefinitions, id: string): Promise<DefinitionReview> {
    for (const head of known.reviews) {
      const review = head.id === id ? await this.#options.store.readReview(tenant, head) : undefined;
      if (review?.id === id) return review;
    }
    throw new GatewayError("NOT_FOUND", "no such definition");
  }

  async #compare(tenant: string, review: DefinitionReview): Promise<DefinitionComparison> {
    const { compared_with: place, definition: after } = review;
    const pin = place === null ? undefined : await this.#options.store.readPin(tenant, place);
    const before = pin?.definition ?? null;
    const { changes, omitted } = diffArguments(before ?? {}, after);
    return { review: reviewHead(review), before, after, changes, omitted };
  }

  /** The detail of an approval's record: digests and the places of changes, no texts of the upstream. */
  async #recorded(
    review: DefinitionReview,
    { id: principal, tenant }: Principal,
    comment: string | undefined,
    displaced: readonly PinHead[],
  ): Promise<JsonObject> {
    const { changes } = await this.#compare(tenant, review);
    const former = await this.#options.store.readPin(tenant, review);
    return {
      action: "definition.approve",
      principal,
      ...recordedReview(review),
      ...(former === undefined ? {} : { replaced: former.digest }),
      changes: changes.slice(0, maxPointers).map(({ pointer }) => pointer.slice(0, 256)),
      ...(displaced.length === 0 ? {} : { displaced: displaced.map(({ upstream }) => upstream) }),
      ...(review.replaces.length === 0 ? {} : { retired: review.replaces }),
      ...(comment === undefined ? {} : { comment }),
    };
  }

  async #retire(tenant: string, { upstream, replaces }: DefinitionReview): Promise<readonly Pin[]> {
    const retired: Pin[] = [];
    for (const tool of replaces) {
      const pin = await this.#options.store.readPin(tenant, { upstream, tool });
      if (pin !== undefined) retired.push({ ...pin, retired: true });
    }
    return retired;
  }

  /** Compares the key id too: a rotated key is another principal, and still the same person. */
  #checkReviewer({ seen_by: seenBy, seen_key_id: seenKey }: DefinitionReview, { id, keyId }: Principal): void {
    if ((seenBy !== id && seenKey !== keyId) || this.#options.allowSelfReview) return;
    throw new GatewayError(
      "APPROVAL_SELF_REVIEW",
      "expected another principal than the one that met the definition first",
    );
  }
}

/** Defence in depth: the route checks the role too. */
function checkRole({ role }: Principal): void {
  if (!can(role, "approval.review")) throw new GatewayError("ROLE_FORBIDDEN", "expected a role that may review");
}

function checkRoom(known: TenantDefinitions, review: DefinitionReview): void {
  if (known.pin(review) !== undefined || known.usage(review.upstream).pins < definitionLimits.pins) return;
  const detail = `expected at most ${definitionLimits.pins} pinned definitions of an upstream`;
  throw new GatewayError("DEFINITION_STATE", detail, { data: { state: review.state } });
}

function pinOf({ upstream, tool, exposed_name, digest, definition }: DefinitionReview, by: Principal, at: string): Pin {
  return { upstream, tool, exposed_name, digest, pinned_by: by.id, pinned_at: at, definition };
}
