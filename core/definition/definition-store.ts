import { setImmediate } from "node:timers/promises";
import type { AbstractBatchOptions } from "abstract-level";
import type { BatchOperation } from "../action/commit-hook.ts";
import type { DefinitionFinding } from "../action/envelope.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import type { UpstreamSettings } from "../config/gateway-config.ts";
import { readFault } from "../evidence/record/store-view.ts";
import type { Store } from "../store/open.ts";
import {
  type DefinitionReview,
  definitionTraits,
  entryKey,
  entryRange,
  type Pin,
  type PinHead,
  pinHead,
  type ReviewHead,
  readDefinition,
  reviewHead,
  reviewId,
  type ToolPlace,
  type WithholdReason,
} from "./entry.ts";
import type { PublishedTool } from "./published-tool.ts";
import { findReasons, type Surroundings } from "./reason.ts";
import { TenantDefinitions } from "./tenant-definitions.ts";

/** Records an event and its operations in one atomic batch. */
export interface DefinitionLog {
  recordEvent(tenant: string, kind: "admin", detail: JsonObject, operations: readonly BatchOperation[]): Promise<void>;
}

interface DefinitionOptions {
  readonly store: Store;
  readonly log: DefinitionLog;
  readonly clock: Clock;
  readonly upstreams: readonly Pick<UpstreamSettings, "name" | "definitions">[];
  /** Called for each definition that is newly withheld, once it is on record. */
  readonly onWithheld: (tenant: string, review: ReviewHead) => Promise<void>;
}

/** The outcome for one tool: kept, as a pin or a review, or only answered. */
interface Outcome {
  readonly findings: readonly DefinitionFinding[];
  readonly pin?: Pin;
  readonly review?: DefinitionReview;
}

/** The definitions of one upstream and tenant. */
export const definitionLimits = {
  pins: 5_000,
  characters: 32 * 1024 * 1024,
  reviews: 200,
  definition: 262_144,
} as const;
const maxReplaced = 100;
/** Definitions named in one record; it counts the others. */
const maxRecorded = 50;
const durably: AbstractBatchOptions<string, string> & { readonly sync: true } = { sync: true };

/**
 * The tool definitions that each tenant's agents may be shown: pinned when a tenant first meets a clean one, and when a
 * reviewer approves another. Everything else is withheld. One change of a tenant at a time.
 */
export class DefinitionStore {
  /** Rises with each change after which a tool may stand differently. Written by this store only. */
  generation = 1;
  readonly #options: DefinitionOptions;
  readonly #settings: ReadonlyMap<string, UpstreamSettings["definitions"]>;
  readonly #tenants = new Map<string, TenantDefinitions>();
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(options: DefinitionOptions) {
    this.#options = options;
    this.#settings = new Map(options.upstreams.map(({ name, definitions }) => [name, definitions]));
  }

  /**
   * Brings the standings of tools up to date for a tenant. `tools`: everything that its upstreams list. What is pinned is
   * durable, and what is withheld on record, when this resolves. Rejects where that is impossible; then nothing stands.
   */
  async judge(by: Principal, tools: readonly PublishedTool[]): Promise<void> {
    const isDue = ({ standings }: PublishedTool): boolean => standings.get(by.tenant)?.generation !== this.generation;
    if (!tools.some(isDue)) return;
    await this.inTurn(by.tenant, async (known) => {
      const { generation } = this;
      const due = tools.filter(isDue);
      const outcomes = new Map<PublishedTool, Outcome>();
      const around = this.#survey(known, tools);
      try {
        for (const tool of due) outcomes.set(tool, await this.#judgeOne(by, tool, around(tool)));
        await this.#keep(by, [...outcomes.values()]);
      } catch (cause) {
        this.#tenants.delete(by.tenant); // what is durable of it is read again
        throw cause;
      }
      for (const [tool, { findings }] of outcomes) {
        tool.standings.set(by.tenant, { generation, marks: findings.length === 0 ? {} : { findings } });
      }
    });
  }

  /**
   * Runs a look at, or a change of, a tenant's definitions after those before it. Rejects with EVIDENCE_UNAVAILABLE where the
   * store fails.
   */
  async inTurn<T>(tenant: string, change: (known: TenantDefinitions) => Promise<T>): Promise<T> {
    const before = this.#turns.get(tenant) ?? Promise.resolve();
    const turn = before.then(async () => change(await this.#load(tenant)));
    this.#turns.set(
      tenant,
      turn.catch(() => undefined),
    ); // those after it run nonetheless
    try {
      return await turn;
    } catch (error) {
      throw readFault(error);
    }
  }

  /** Reads the pinned definition of a tool. Rejects with STATE_UNUSABLE for a damaged entry. */
  async readPin(tenant: string, place: ToolPlace): Promise<Pin | undefined> {
    const key = entryKey(tenant, "pin", place);
    const text = await this.#options.store.get(key);
    return text === undefined ? undefined : readDefinition<Pin>(key, text);
  }

  /** Reads the review of a tool. Rejects with STATE_UNUSABLE for a damaged entry. */
  async readReview(tenant: string, place: ToolPlace): Promise<DefinitionReview | undefined> {
    const key = entryKey(tenant, "review", place);
    const text = await this.#options.store.get(key);
    return text === undefined ? undefined : readDefinition<DefinitionReview>(key, text);
  }

  get now(): string {
    return new Date(this.#options.clock()).toISOString();
  }

  /** Records a change with its operations, and has every standing looked up again. */
  async record(tenant: string, detail: JsonObject, operations: readonly BatchOperation[]): Promise<void> {
    try {
      await this.#options.log.recordEvent(tenant, "admin", detail, operations);
    } catch (cause) {
      this.#tenants.delete(tenant); // it may be on disk or not: what is durable is read again
      throw cause;
    } finally {
      this.generation += 1;
    }
  }

  async #load(tenant: string): Promise<TenantDefinitions> {
    const loaded = this.#tenants.get(tenant);
    if (loaded !== undefined) return loaded;
    const known = new TenantDefinitions();
    const { store } = this.#options;
    for await (const [key, text] of store.iterator(entryRange(tenant, "pin"))) {
      known.putPin(pinHead(readDefinition<Pin>(key, text)));
    }
    for await (const [key, text] of store.iterator(entryRange(tenant, "review"))) {
      known.putReview(reviewHead(readDefinition<DefinitionReview>(key, text)));
    }
    this.#tenants.set(tenant, known);
    return known;
  }

  /** Returns the surroundings of each tool of a list. */
  #survey(known: TenantDefinitions, tools: readonly PublishedTool[]): (tool: PublishedTool) => Surroundings {
    const listed = new Map(tools.map(({ exposedName, upstream }) => [exposedName, upstream]));
    const present = new Set(tools.map(({ upstream, name }) => JSON.stringify([upstream, name])));
    const gone = new Map<string, PinHead[]>();
    const listedBefore = new Set<string>();
    for (const pin of known.pins) {
      const { upstream, tool, retired } = pin;
      listedBefore.add(upstream);
      if (retired === true || present.has(JSON.stringify([upstream, tool]))) continue;
      const pins = gone.get(upstream) ?? [];
      if (pins.length < maxReplaced) pins.push(pin);
      gone.set(upstream, pins);
    }
    return ({ upstream, definition }) => ({
      known,
      listed,
      gone: replacedBy(definition, gone.get(upstream) ?? []),
      reviewsNewTools: listedBefore.has(upstream) && this.#settings.get(upstream)?.newTools === "review",
      pause: () => setImmediate(),
    });
  }

  /** Judges one definition, and takes note of a new pin or review. */
  async #judgeOne(by: Principal, tool: PublishedTool, around: Surroundings): Promise<Outcome> {
    const { known } = around;
    const place: ToolPlace = { upstream: tool.upstream, tool: tool.name };
    if (this.#settings.get(tool.upstream)?.pin === false) return { findings: [] };
    if (known.pin(place)?.digest === tool.digest) return { findings: [] };
    const former = known.review(place);
    if (former?.digest === tool.digest) return { findings: findingsOf(former) };
    if (former?.denied.includes(tool.digest)) return { findings: ["denied"] };
    const definition = { ...tool.definition, name: tool.name };
    const characters = JSON.stringify(definition).length;
    if (characters > definitionLimits.definition) return { findings: ["limit"] };
    const { reasons, comparedWith } = await findReasons(tool, around);
    const head = { ...place, exposed_name: tool.exposedName, digest: tool.digest };
    const usage = known.usage(tool.upstream);
    if (reasons.length === 0) {
      const isFull = usage.pins >= definitionLimits.pins || usage.characters + characters > definitionLimits.characters;
      if (isFull) return { findings: ["limit"] };
      const pin: Pin = { ...head, pinned_by: by.id, pinned_at: this.now, definition };
      known.putPin(pinHead(pin));
      return { findings: [], pin };
    }
    const findings = distinct(reasons);
    if (former === undefined && usage.reviews >= definitionLimits.reviews) return { findings: [...findings, "limit"] };
    const review: DefinitionReview = {
      id: reviewId(by.tenant, place, tool.digest),
      state: "pending",
      ...head,
      reasons,
      compared_with: comparedWith,
      replaces: reasons.some(({ finding }) => finding === "renamed") ? around.gone : [],
      seen_by: by.id,
      seen_key_id: by.keyId,
      seen_at: this.now,
      denied: deniedBefore(former),
      definition,
    };
    known.putReview(reviewHead(review));
    return { findings, review };
  }

  /** Makes the new pins and reviews durable, the reviews with their record. */
  async #keep({ tenant, id }: Principal, outcomes: readonly Outcome[]): Promise<void> {
    const pins = outcomes.flatMap(({ pin }) => pin ?? []);
    const reviews = outcomes.flatMap(({ review }) => review ?? []);
    const operations = [
      ...pins.map((pin) => putDefinition(tenant, "pin", pin)),
      ...reviews.map((review) => putDefinition(tenant, "review", review)),
    ];
    if (reviews.length === 0) {
      if (operations.length > 0) await this.#options.store.batch(operations, durably);
      return;
    }
    const definitions = reviews.slice(0, maxRecorded).map(recordedReview);
    const omitted = reviews.length - definitions.length;
    const detail = { action: "definition.withhold", principal: id, definitions, ...(omitted > 0 ? { omitted } : {}) };
    await this.#options.log.recordEvent(tenant, "admin", detail, operations);
    for (const review of reviews) await this.#options.onWithheld(tenant, reviewHead(review));
  }
}

export function putDefinition(tenant: string, kind: "pin" | "review", entry: Pin | DefinitionReview): BatchOperation {
  return { type: "put", key: entryKey(tenant, kind, entry), value: JSON.stringify(entry) };
}

/** The members of a review that its records name: digests in place of texts. */
export function recordedReview({ id, upstream, tool, digest, reasons }: ReviewHead): JsonObject {
  return { id, upstream, tool, digest, findings: distinct(reasons) };
}

/** Returns the tools among `gone` that a definition may be, under another name. Servers list other tools to other clients. */
function replacedBy(definition: JsonObject, gone: readonly PinHead[]): readonly string[] {
  if (gone.length === 0) return [];
  const traits = new Set(definitionTraits(definition));
  return gone.filter((pin) => pin.traits.some((trait) => traits.has(trait))).map(({ tool }) => tool);
}

function findingsOf({ reasons, state }: ReviewHead): readonly DefinitionFinding[] {
  return state === "denied" ? ["denied", ...distinct(reasons)] : distinct(reasons);
}

function distinct(reasons: readonly WithholdReason[]): readonly DefinitionFinding[] {
  return [...new Set(reasons.map(({ finding }) => finding))];
}

const maxDenied = 16;

/** The digests that a reviewer denied for this tool: an upstream that returns to one of them asks nobody again. */
function deniedBefore(former: ReviewHead | undefined): readonly string[] {
  if (former === undefined) return [];
  const all = former.state === "denied" ? [...former.denied, former.digest] : former.denied;
  return all.slice(-maxDenied);
}
