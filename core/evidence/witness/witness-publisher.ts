import { setTimeout as sleep } from "node:timers/promises";
import { GatewayError } from "../../action/error.ts";
import type { JsonObject } from "../../action/json.ts";
import type { WitnessConfig } from "../../config/gateway-config.ts";
import type { EgressGuard } from "../../egress/egress-guard.ts";
import type { ChainStatus } from "../chain/chain-table.ts";

import { type KeyHistory, readKeyHistory } from "../key/key-history.ts";
import { checkpointKey } from "../record/key-space.ts";
import { parseCheckpoint } from "../tree/checkpoint.ts";
import { TileReader } from "../tree/tile-reader.ts";
import { readPublishedHeads } from "./published-heads.ts";
import {
  compareWithNote,
  describeContradiction,
  type Witness,
  type WitnessedLedger,
  type WitnessFeedOptions,
  type WitnessResult,
} from "./witness.ts";
import { WitnessFeed } from "./witness-feed.ts";
import { FileWitness } from "./witness-file.ts";
import { GitWitness } from "./witness-git.ts";
import { HttpWitness } from "./witness-http.ts";

interface WitnessPublisherOptions extends WitnessFeedOptions {
  readonly ledger: WitnessedLedger & BeatingLedger;
  readonly witnesses: readonly WitnessConfig[];
  /** A chain without a record for so long gets a heartbeat; 0 for none. */
  readonly heartbeatMs: number;
  /** Called for each attempt to publish to a witness. A failed one blocks no action. */
  readonly onPush: (result: "published" | "failed") => void;
  readonly onWarning: (message: string, fields: object) => void;
  readonly egress: EgressGuard;
}

/** A public key and the sizes of the chain it signs for, both included; `to_size` null while it is the current one. */
interface PublishedKey {
  readonly key_id: string;
  readonly public_key: string;
  readonly from_size: number;
  readonly to_size: number | null;
}

/** A checkpoint as its tenant may have it, with the keys that sign it. */
export interface PublishedCheckpoint {
  /** The signed note. */
  readonly note: string;
  readonly keys: readonly PublishedKey[];
}

/** Every key of a tenant's chain, the first one first. */
export interface PublishedKeys {
  readonly tenant: string;
  readonly chain: string;
  readonly keys: readonly PublishedKey[];
}

/** The comparison of a chain with one witness: `unreachable` where the witness did not answer, `no_record` where it has no note. */
export interface WitnessComparison {
  readonly witness: string;
  readonly verdict: WitnessResult["verdict"] | "no_record" | "unreachable";
  /** Records that the witness has seen. */
  readonly size?: number;
}

const publishGraceMs = 10_000;

/** Publishes evidence outside this process: checkpoints to witnesses and to callers, and heartbeats of idle chains. */
export class WitnessPublisher {
  readonly #options: WitnessPublisherOptions;
  readonly #schedule: WitnessSchedule;
  readonly #witnesses: readonly Witness[];
  readonly #heartbeat: Heartbeat | null;

  private constructor(options: WitnessPublisherOptions, witnesses: readonly Witness[], schedule: WitnessSchedule) {
    const { ledger, heartbeatMs: intervalMs, onWarning } = options;
    this.#options = options;
    this.#witnesses = witnesses;
    this.#schedule = schedule;
    const onFailure = (tenant: string, error: unknown): void =>
      onWarning("heartbeat_failed", { tenant, cause: messageOf(error) });
    this.#heartbeat = intervalMs === 0 ? null : new Heartbeat({ ledger, intervalMs, onFailure });
  }

  /** Compares every chain with every witness that answers, refuses those that do not match, then begins to publish. */
  static async start(options: WitnessPublisherOptions): Promise<WitnessPublisher> {
    const witnesses = options.witnesses.map((config) => openWitness(config, options.egress));
    const feeds = options.witnesses.map(({ intervalMs }, index) => {
      return { feed: new WitnessFeed(witnesses[index] as Witness, options), intervalMs };
    });
    const onPush = (witness: string, error: unknown): void => {
      options.onPush(error === undefined ? "published" : "failed");
      if (error !== undefined) options.onWarning("witness_publish_failed", { witness, cause: messageOf(error) });
    };
    return new WitnessPublisher(options, witnesses, await WitnessSchedule.start({ feeds, onPush }));
  }

  /** The latest checkpoint. Throws NOT_FOUND for a tenant without evidence. */
  async checkpoint(tenant: string): Promise<PublishedCheckpoint> {
    const note = await this.#options.store.get(checkpointKey(tenant));
    if (note === undefined) throw noEvidence();
    const { keys } = await this.keys(tenant);
    return { note, keys };
  }

  /** The keys that sign a tenant's chain. Throws NOT_FOUND for a tenant without evidence. */
  async keys(tenant: string): Promise<PublishedKeys> {
    const { store, ledger } = this.#options;
    const status = ledger.status().find((each) => each.tenant === tenant);
    if (status === undefined || status.seq < 0) throw noEvidence();
    const { chain } = status;
    const history = await readKeyHistory(store, tenant, chain);
    if (typeof history !== "string") return { tenant, chain, keys: publishKeys(history) };
    throw new GatewayError("EVIDENCE_UNAVAILABLE", `chain of tenant \`${tenant}\` ${history}`);
  }

  /** Compares a tenant's chain with every witness. A chain that one contradicts is refused. */
  async ask(tenant: string): Promise<readonly WitnessComparison[]> {
    return Promise.all(this.#witnesses.map((witness) => this.#compareWith(witness, tenant)));
  }

  /** Publishes the heads of this moment, for at most 10 s. A witness that refuses or does not answer is warned about. */
  async publish(): Promise<void> {
    await inGrace(this.#schedule.pushNow());
  }

  /** Publishes the final heads, for at most 10 s. */
  async stop(): Promise<void> {
    await this.#heartbeat?.stop();
    await inGrace(this.#schedule.stop());
  }

  async #compareWith(witness: Witness, tenant: string): Promise<WitnessComparison> {
    try {
      return { witness: witness.name, ...(await this.#compare(witness, tenant)) };
    } catch (error) {
      this.#options.onWarning("witness_query_failed", { witness: witness.name, cause: messageOf(error) });
      return { witness: witness.name, verdict: "unreachable" };
    }
  }

  async #compare(witness: Witness, tenant: string): Promise<Omit<WitnessComparison, "witness">> {
    const { store, ledger } = this.#options;
    const latest = parseCheckpoint((await store.get(checkpointKey(tenant))) ?? "");
    const note = latest === undefined ? undefined : await witness.latest(latest.chain);
    if (latest === undefined) return this.#compareMissing(witness, tenant);
    if (note === undefined) return { verdict: "no_record" };
    const keys = await readKeyHistory(store, tenant, latest.chain);
    if (typeof keys === "string") throw new Error(`tenant \`${tenant}\` ${keys}`);
    const end = { tenant, chain: latest.chain, head: { seq: latest.size - 1, hash: latest.head } };
    const result = await compareWithNote(note, end, keys, new TileReader(store, tenant));
    const reason = describeContradiction(result, witness.name, end);
    if (reason !== undefined) ledger.refuse(tenant, reason);
    return result;
  }

  /** Compares a tenant that has no evidence here with what was published of it before. */
  async #compareMissing(witness: Witness, tenant: string): Promise<Omit<WitnessComparison, "witness">> {
    const { confirmed, pending } = await readPublishedHeads(this.#options.store, witness.name);
    const entry = [...(confirmed ?? []), ...(pending ?? [])].find((each) => each.tenant === tenant);
    const note = entry === undefined ? undefined : await witness.latest(entry.chain);
    const seen = parseCheckpoint(note ?? "");
    return seen === undefined ? { verdict: "no_record" } : { verdict: "behind", size: seen.size };
  }
}

/** Resolves with the work, or after 10 s without it. */
async function inGrace(work: Promise<void>): Promise<void> {
  const late = new AbortController();
  const timeout = sleep(publishGraceMs, undefined, { signal: late.signal }).catch(() => undefined);
  await Promise.race([work, timeout]);
  late.abort();
}

/** The public half of a chain's keys. */
export function publishKeys(history: KeyHistory): readonly PublishedKey[] {
  return history.tenures.map(({ key, fromSize, toSize }) => {
    return { key_id: key.id, public_key: key.text, from_size: fromSize, to_size: toSize };
  });
}

function noEvidence(): GatewayError {
  return new GatewayError("NOT_FOUND", "no evidence yet");
}

function openWitness(config: WitnessConfig, egress: EgressGuard): Witness {
  switch (config.type) {
    case "file":
      return new FileWitness(config.name, config.path);
    case "git":
      return new GitWitness(config.name, config.repository);
    case "http":
      return new HttpWitness({ ...config, egress });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The part of the ledger that heartbeats use. */
interface BeatingLedger {
  status(): readonly ChainStatus[];
  recordEvent(tenant: string, kind: "heartbeat", detail: JsonObject): Promise<void>;
}

interface HeartbeatOptions {
  readonly ledger: BeatingLedger;
  /** A chain without a record for so long gets one. */
  readonly intervalMs: number;
  readonly onFailure: (tenant: string, error: unknown) => void;
}

/**
 * Records heartbeats of idle chains: a chain without a record for longer than its heartbeat was stopped, or cut.
 * The first beat comes between one and two intervals after the last record.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #timer: NodeJS.Timeout;
  #heads: ReadonlyMap<string, number> = new Map();
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#beat(), options.intervalMs).unref();
  }

  /** Resolves when the last beat is recorded or refused. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }

  #beat(): void {
    const ready = this.#options.ledger.status().filter(({ state, seq }) => state === "ready" && seq >= 0);
    const idle = ready.filter(({ tenant, seq }) => this.#heads.get(tenant) === seq);
    this.#heads = new Map(ready.map(({ tenant, seq }) => [tenant, seq]));
    this.#running = Promise.all(idle.map(({ tenant }) => this.#record(tenant)));
  }

  async #record(tenant: string): Promise<void> {
    try {
      await this.#options.ledger.recordEvent(tenant, "heartbeat", {});
    } catch (error) {
      this.#options.onFailure(tenant, error);
    }
  }
}

interface ScheduledFeed {
  readonly feed: WitnessFeed;
  readonly intervalMs: number;
}

interface WitnessScheduleOptions {
  readonly feeds: readonly ScheduledFeed[];
  /** Called for each push, with an error where the witness refused or did not answer. It never blocks an action. */
  readonly onPush: (witness: string, error: unknown) => void;
}

/** Pushes to each witness at its own interval and when it is asked to, one push at a time. */
export class WitnessSchedule {
  readonly #options: WitnessScheduleOptions;
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #running = new Map<WitnessFeed, Promise<void>>();

  private constructor(options: WitnessScheduleOptions) {
    this.#options = options;
    this.#timers = options.feeds.map(({ feed, intervalMs }) =>
      setInterval(() => void this.#push(feed), intervalMs).unref(),
    );
  }

  /** Compares every chain with every witness that answers, then begins to push. */
  static async start(options: WitnessScheduleOptions): Promise<WitnessSchedule> {
    await Promise.all(
      options.feeds.map(({ feed }) => feed.compare().catch((error) => options.onPush(feed.witness.name, error))),
    );
    return new WitnessSchedule(options);
  }

  /** Resolves when every witness has taken or refused the final heads. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.pushNow();
  }

  /** Resolves when every witness has taken or refused the heads of this moment. */
  async pushNow(): Promise<void> {
    // A push that runs already may be past the heads of this moment.
    await Promise.all(this.#running.values());
    await Promise.all(this.#options.feeds.map(({ feed }) => this.#push(feed)));
  }

  /** A push that still runs is the push of this turn too. */
  #push(feed: WitnessFeed): Promise<void> {
    const running = this.#running.get(feed) ?? this.#run(feed).finally(() => this.#running.delete(feed));
    this.#running.set(feed, running);
    return running;
  }

  async #run(feed: WitnessFeed): Promise<void> {
    try {
      await feed.push();
      this.#options.onPush(feed.witness.name, undefined);
    } catch (error) {
      this.#options.onPush(feed.witness.name, error);
    }
  }
}
