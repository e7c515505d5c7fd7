import type { ActionEnvelope } from "../../action/envelope.ts";
import { isJsonObject, type JsonObject } from "../../action/json.ts";
import type { JsonRpcNotification } from "../../action/json-rpc.ts";
import type { ActionFactory, Actor } from "../../road/action-factory.ts";
import { judgeNotification, type Road } from "../../road/run.ts";

/** Why a client is not told: policy does not allow it, it waited too long to be judged, or too many waited. */
export type DropReason = "policy" | "late" | "full";

interface DroppedNotification {
  readonly reason: DropReason;
  readonly upstream: string;
  /** The action whose output it was judged as; null where nobody judged it. */
  readonly action: string | null;
}

export interface RelayParts {
  readonly road: Road;
  readonly actions: ActionFactory;
  readonly onDropped: (dropped: DroppedNotification) => void;
}

/** What an upstream said, and to whom it may go. */
interface Told {
  readonly upstream: string;
  readonly note: JsonRpcNotification;
  /** Whether strangers may have written it: then it is judged, and taints the session before anyone is told. */
  readonly untrusted: boolean;
  /** The action of which it is output. Asked for only where it is judged. */
  readonly action: () => ActionEnvelope;
  readonly deliver: (note: JsonRpcNotification) => void;
  /** Aborts when the client is to be told nothing more. */
  readonly signal: AbortSignal;
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
 * Tells a client what policy leaves of what an upstream said, behind all that is in the lane. Where policy does not
 * allow it, cannot judge it or comes to it too late, it is dropped. What clients have no use for ends here.
 */
export function relayNotification(parts: RelayParts, lane: NotificationLane, told: Told): void {
  if (!relayed.has(told.note.method)) return;
  if (lane.idle && !isJudged(parts.road, told)) {
    told.deliver(told.note);
    return;
  }
  const bytes = Buffer.byteLength(JSON.stringify(told.note));
  if (!lane.enter(bytes, (late) => takeTurn(parts, told, late))) drop(parts, told, "full", null);
}

/**
 * What an upstream says unasked, as output of an action of its own: that `actor` is told of it. `mixed`: whether an
 * untrusted tool of that upstream was called, whose words these may be.
 */
export function unasked(
  actions: ActionFactory,
  actor: () => Actor,
  { upstream, note, mixed }: { readonly upstream: string; readonly note: JsonRpcNotification; readonly mixed: boolean },
): Pick<Told, "action" | "note" | "untrusted" | "upstream"> {
  const attempt = { tool: note.method, target: upstream, capability: "read", arguments: {} } as const;
  const untrusted = mixed || actions.isUntrusted(upstream, note.method);
  return { upstream, note, untrusted, action: () => actions.make(actor(), { ...attempt, untrusted }) };
}

async function takeTurn(parts: RelayParts, told: Told, late: boolean): Promise<void> {
  if (told.signal.aborted) return;
  if (!isJudged(parts.road, told)) return told.deliver(told.note);
  if (late) return drop(parts, told, "late", null);
  try {
    await judge(parts, told);
  } catch {
    drop(parts, told, "policy", null);
  }
}

async function judge(parts: RelayParts, told: Told): Promise<void> {
  const { note, deliver, signal } = told;
  const action = told.action();
  const [said, own] = partsOf(note);
  const left = await judgeNotification(parts.road, action, said);
  // INVARIANT: from here on nobody sees the notification as it came.
  if (!isJsonObject(left)) return drop(parts, told, "policy", action.id);
  if (!signal.aborted) deliver({ jsonrpc: "2.0", method: note.method, params: { ...left, ...own } });
}

function isJudged(road: Road, { note, untrusted }: Told): boolean {
  return note.params !== undefined && (untrusted || road.policies.readsOutput("mcp"));
}

/** What the upstream says, and what its connection has put back in its place: the client's own progress token. */
function partsOf({ method, params = {} }: JsonRpcNotification): readonly [said: JsonObject, own: JsonObject] {
  const { progressToken, ...said } = params;
  if (method !== "notifications/progress" || progressToken === undefined) return [params, {}];
  return [said, { progressToken }];
}

function drop(parts: RelayParts, { upstream }: Told, reason: DropReason, action: string | null): void {
  parts.onDropped({ reason, upstream, action });
}

const maxWaiting = 1_024;
const maxBytes = 4 * 1024 * 1024;
const maxWaitMs = 2_000;

/** Lets one notification go, or drops it: `late` where it has waited for its turn longer than anything may. */
type Turn = (late: boolean) => Promise<void>;

/**
 * The notifications of one upstream on their way to one client, in the order in which they came, one at a time. At most
 * 1,024 wait, 4 MiB of them, and none begins its turn after more than 2 s: so an answer that waits for those before it
 * is not held up by a flood.
 */
export class NotificationLane {
  #waiting = 0;
  #bytes = 0;
  #last: Promise<void> = Promise.resolve();

  /** Whether what comes now overtakes nothing. */
  get idle(): boolean {
    return this.#waiting === 0;
  }

  /** Resolves once all that came before has gone or was dropped. */
  get settled(): Promise<void> {
    return this.#last;
  }

  /** Takes in a notification of so many bytes, whose `turn` must not reject. False where there is no room. */
  enter(bytes: number, turn: Turn): boolean {
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

/** The lanes to one client, one for each upstream that has said something: none holds up another's. */
export class LaneTable {
  readonly #lanes = new Map<string, NotificationLane>();

  of(upstream: string): NotificationLane {
    const lane = this.#lanes.get(upstream) ?? new NotificationLane();
    this.#lanes.set(upstream, lane);
    return lane;
  }
}
