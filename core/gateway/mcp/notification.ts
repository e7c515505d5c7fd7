import type { CancelSignal } from "../../action/cancellation.ts";
import type { ActionEnvelope } from "../../action/envelope.ts";
import { isJsonObject, type JsonObject } from "../../action/json.ts";
import type { JsonRpcNotification } from "../../action/json-rpc.ts";
import type { ActionFactory, Actor } from "../../road/action-factory.ts";
import { judgeNotification, type Road } from "../../road/run.ts";

/** Reasons for dropping a notification: policy does not allow it, it waited too long, or too many wait. */
export type DropReason = "policy" | "late" | "full";

interface DroppedNotification {
  readonly reason: DropReason;
  readonly upstream: string;
  /** The action as whose output it was evaluated; null where it was not. */
  readonly action: string | null;
}

export interface RelayParts {
  readonly road: Road;
  readonly actions: ActionFactory;
  readonly onDropped: (dropped: DroppedNotification) => void;
}

/** A notification of an upstream, and its recipient. */
interface UpstreamNotification {
  readonly upstream: string;
  readonly note: JsonRpcNotification;
  /** Untrusted content: it is evaluated, and taints the session before it is delivered. */
  readonly untrusted: boolean;
  /** Makes the action whose output it is. Called only where it is evaluated. */
  readonly action: () => ActionEnvelope;
  readonly deliver: (note: JsonRpcNotification) => void;
  /** Aborts when nothing more may be delivered. */
  readonly signal: Pick<CancelSignal, "aborted">;
}

const relayed: ReadonlySet<string> = new Set([
  "notifications/message",
  "notifications/progress",
  "notifications/resources/list_changed",
  "notifications/resources/updated",
  "notifications/tools/list_changed",
  "notifications/prompts/list_changed",
  "notifications/elicitation/complete",
]);

/**
 * Delivers a notification as policy redacts it, after everything already in the lane. It is dropped where policy does not
 * allow it, fails to evaluate it or comes to it too late. Methods that clients have no use for are not relayed.
 */
export function relayNotification(parts: RelayParts, lane: NotificationLane, sent: UpstreamNotification): void {
  if (!relayed.has(sent.note.method)) return;
  if (lane.idle && !isJudged(parts.road, sent)) {
    sent.deliver(sent.note);
    return;
  }
  const bytes = Buffer.byteLength(JSON.stringify(sent.note));
  if (!lane.enqueue(bytes, (late) => takeTurn(parts, sent, late))) drop(parts, sent, "full", null);
}

/**
 * A notification outside of any call, as the output of an action of its own that `actor` attempts. `mixed`: an untrusted
 * tool of that upstream was called, whose content this may be.
 */
export function unsolicited(
  actions: ActionFactory,
  actor: () => Actor,
  { upstream, note, mixed }: { readonly upstream: string; readonly note: JsonRpcNotification; readonly mixed: boolean },
): Pick<UpstreamNotification, "action" | "note" | "untrusted" | "upstream"> {
  const attempt = { tool: note.method, target: upstream, capability: "read", arguments: {} } as const;
  const untrusted = mixed || actions.isUntrusted(upstream, note.method);
  return { upstream, note, untrusted, action: () => actions.make(actor(), { ...attempt, untrusted }) };
}

async function takeTurn(parts: RelayParts, sent: UpstreamNotification, late: boolean): Promise<void> {
  if (sent.signal.aborted) return;
  if (!isJudged(parts.road, sent)) return sent.deliver(sent.note);
  if (late) return drop(parts, sent, "late", null);
  try {
    await judge(parts, sent);
  } catch {
    drop(parts, sent, "policy", null);
  }
}

async function judge(parts: RelayParts, sent: UpstreamNotification): Promise<void> {
  const { note, deliver, signal } = sent;
  const action = sent.action();
  const [content, own] = partsOf(note);
  const left = await judgeNotification(parts.road, action, content);
  // INVARIANT: the unredacted notification is not used from here on.
  if (!isJsonObject(left)) return drop(parts, sent, "policy", action.id);
  if (!signal.aborted) deliver({ jsonrpc: "2.0", method: note.method, params: { ...left, ...own } });
}

function isJudged(road: Road, { note, untrusted }: UpstreamNotification): boolean {
  return note.params !== undefined && (untrusted || road.policies.readsOutput("mcp"));
}

/** Splits off the client's own progress token, which the connection has put back: it is not evaluated. */
function partsOf({ method, params = {} }: JsonRpcNotification): readonly [content: JsonObject, own: JsonObject] {
  const { progressToken, ...content } = params;
  if (method !== "notifications/progress" || progressToken === undefined) return [params, {}];
  return [content, { progressToken }];
}

function drop(parts: RelayParts, { upstream }: UpstreamNotification, reason: DropReason, action: string | null): void {
  parts.onDropped({ reason, upstream, action });
}

const maxWaiting = 1_024;
const maxBytes = 4 * 1024 * 1024;
const maxWaitMs = 2_000;

/** Delivers or drops one notification. `late`: it has waited longer than the maximum. */
type Turn = (late: boolean) => Promise<void>;

/**
 * The notifications of one upstream to one client, delivered in order, one at a time. At most 1,024 wait, with 4 MiB, and
 * none is evaluated after more than 2 s: a flood does not delay the response that waits for those before it.
 */
export class NotificationLane {
  #waiting = 0;
  #bytes = 0;
  #last: Promise<void> = Promise.resolve();

  /** True where nothing waits. */
  get idle(): boolean {
    return this.#waiting === 0;
  }

  /** Resolves once everything enqueued so far is delivered or dropped. */
  get settled(): Promise<void> {
    return this.#last;
  }

  /** Enqueues a notification of a size in bytes. `turn` must not reject. False where there is no room. */
  enqueue(bytes: number, turn: Turn): boolean {
    if (this.#waiting >= maxWaiting || this.#bytes + bytes > maxBytes) return false;
    const latest = performance.now() + maxWaitMs;
    this.#waiting++;
    this.#bytes += bytes;
    this.#last = this.#last
      .then(() => turn(performance.now() > latest))
      .finally(() => {
        this.#waiting--;
        this.#bytes -= bytes;
      });
    return true;
  }
}

/** The lanes to one client, one for each upstream: none delays another. */
export class LaneTable {
  readonly #lanes = new Map<string, NotificationLane>();

  of(upstream: string): NotificationLane {
    const lane = this.#lanes.get(upstream) ?? new NotificationLane();
    this.#lanes.set(upstream, lane);
    return lane;
  }
}
