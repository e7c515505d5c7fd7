import type { EvidenceRecord } from "../../core/evidence/record/record.ts";
import type { Kill } from "../../core/kill/kill.ts";
import type { TicketView } from "../../core/ticket/ticket-issuer.ts";
import { type Acknowledged, type AskedChange, isRecordOf } from "./acknowledged.ts";
import { LoadClient, whenAllEnd } from "./load-client.ts";
import type { LoadWorld } from "./load-world.ts";
import {
  type BackupPage,
  type HeldCall,
  type HeldTicket,
  heldArguments,
  type LoadMemory,
  maxTicketUses,
  revokedMark,
  type Suspect,
} from "./mixed-load.ts";

/** Calls of earlier loads that stay remembered. */
const maxPast = 300;
/** Backups that the gateway keeps. */
const keptBackups = 3;

interface Page<T> {
  readonly items: readonly T[];
}

/** Compares a gateway with what clients of the one before it were answered, and with what that one recorded. */
export class RestartCheck {
  readonly #world: LoadWorld;
  readonly #memory: LoadMemory;
  readonly #before: Acknowledged;
  readonly #records: readonly EvidenceRecord[];
  readonly #acknowledged: Acknowledged;
  readonly #client: LoadClient;
  readonly #faults: string[] = [];

  /** `before`: what the killed gateway acknowledged, and `records` what it left. `acknowledged`: filled with what this one does. */
  constructor(
    world: LoadWorld,
    memory: LoadMemory,
    before: { readonly acknowledged: Acknowledged; readonly records: readonly EvidenceRecord[] },
    acknowledged: Acknowledged,
  ) {
    this.#world = world;
    this.#memory = memory;
    this.#before = before.acknowledged;
    this.#records = before.records;
    this.#acknowledged = acknowledged;
    this.#client = new LoadClient(world, acknowledged);
  }

  /** Returns what does not fit, a line each. Afterwards nothing waits for review. */
  async run(): Promise<readonly string[]> {
    this.#faults.push(...this.#memory.receipts.add(await this.#world.newReceipts()));
    await whenAllEnd([
      ...this.#memory.suspects.map((suspect) => this.#checkSuspect(suspect)),
      this.#checkHeld(),
      this.#checkTickets(),
      this.#checkBackups(),
      this.#checkChain(),
    ]);
    await this.#denyPending();
    await this.#client.hangUp();
    return this.#faults;
  }

  /** What was stopped is stopped, what was released is free; what nobody was told of is as the chain says. */
  async #checkSuspect(suspect: Suspect): Promise<void> {
    const { person, scope, subject, change } = suspect;
    const { items } = await this.#client.ask<Page<Kill>>("rita", "GET", "kills?limit=500");
    const isStopped = items.some((kill) => kill.scope === scope && kill.subject === subject);
    const expected = change === null ? suspect.isStopped : (change.event === "killed") === this.#isRecorded(change);
    if (isStopped !== expected) this.#fault(`${scope} ${subject} is ${isStopped ? "stopped" : "free"}`);
    suspect.isStopped = isStopped;
    suspect.change = null;
    if (!isStopped) return;
    const label = `again-${person}-${this.#world.startCount}`;
    this.#memory.receipts.limit(`${label} stopped`, 0);
    const end = await this.#client.agent(person, label)("blocked call", "read_echo", { mark: `${label} stopped` });
    if (end.kind !== "refused") this.#fault(`${person} is stopped, a call was ${end.kind}`);
  }

  /** Each held call of the last load is repeated, and one of long ago. */
  async #checkHeld(): Promise<void> {
    const { held, past, receipts } = this.#memory;
    const old = past[Math.floor(past.length / 2)];
    const states = await whenAllEnd(held.map((each) => this.#stateOf(each)));
    const arrived = held.map(({ mark }) => receipts.of(mark));
    const oldArrived = old === undefined ? 0 : receipts.of(old.mark);
    const repeated = await whenAllEnd([...held, ...(old === undefined ? [] : [old])].map((each) => this.#repeat(each)));
    this.#faults.push(...receipts.add(await this.#world.newReceipts()));
    for (const [at, each] of held.entries()) {
      const ran = receipts.of(each.mark) - (arrived[at] ?? 0);
      this.#judgeHeld(each, states[at], { isServed: repeated[at] === true, ran, ranBefore: arrived[at] ?? 0 });
    }
    if (old !== undefined && (repeated.at(-1) === true || receipts.of(old.mark) !== oldArrived)) {
      this.#fault(`${old.label}: an approval that is over permitted a call`);
    }
    past.push(...held);
    past.splice(0, past.length - maxPast);
    this.#memory.held = [];
  }

  async #stateOf({ id }: HeldCall): Promise<string | undefined> {
    if (id === null) return undefined;
    const { approval } = await this.#client.ask<{ approval: { state: string } }>("rita", "GET", `approvals/${id}`);
    return approval.state;
  }

  async #repeat(held: HeldCall): Promise<boolean> {
    const call = this.#client.agent("writer", held.label);
    return (await call("retry", "write_echo", heldArguments(held))).kind === "served";
  }

  #judgeHeld(
    { label, review }: HeldCall,
    state: string | undefined,
    { isServed, ran, ranBefore }: { readonly isServed: boolean; readonly ran: number; readonly ranBefore: number },
  ): void {
    const isRecorded = review !== null && this.#isRecorded(review);
    const possible = isRecorded ? (review.event === "denied" ? ["denied"] : ["approved", "consumed"]) : ["pending"];
    if (state !== undefined && !possible.includes(state)) this.#fault(`${label}: expected ${possible}, got ${state}`);
    if (this.#before.errand(label).served > 0 && state !== "consumed") this.#fault(`${label}: ran, and is ${state}`);
    const uses = state === "approved" ? 1 : 0;
    if (isServed === (uses === 1) && ran === uses && (uses === 0 || ranBefore === 0)) return;
    this.#fault(`${label}: is ${state}, ran ${ranBefore} times, and ${ran} times more after the start`);
  }

  /** Uses and revocations are kept; a ticket that is used up, or revoked, permits nothing. */
  async #checkTickets(): Promise<void> {
    const { items } = await this.#client.ask<Page<TicketView>>("rita", "GET", "tickets?limit=500");
    const viewById = new Map(items.map((view) => [view.id, view]));
    await whenAllEnd(this.#memory.tickets.map((ticket) => this.#checkTicket(ticket, viewById.get(ticket.id))));
    this.#memory.tickets = [];
  }

  async #checkTicket(ticket: HeldTicket, view: TicketView | undefined): Promise<void> {
    const { label, revocation } = ticket;
    const { served } = this.#before.errand(label);
    if (view === undefined) return this.#fault(`${label}: the ticket is gone`);
    if (view.uses < served) this.#fault(`${label}: was used ${served} times, the ticket has ${view.uses}`);
    const isRevoked = revocation !== null && this.#isRecorded(revocation);
    if ((view.revoked !== null) !== isRevoked) this.#fault(`${label}: is ${view.state}`);
    const call = this.#client.agent("holder", label, ticket.token);
    const mark = isRevoked ? revokedMark(ticket) : `${label} used`;
    if (isRevoked) this.#memory.receipts.limit(mark, 0);
    const end = await call("use", "desk_echo", { mark });
    const mayServe = !isRevoked && view.uses < maxTicketUses;
    if (end.kind === "served" && !mayServe) this.#fault(`${label}: a ticket that is ${view.state} permitted a call`);
  }

  /** The last backup that was complete is there, unless as many younger ones are as are kept. */
  async #checkBackups(): Promise<void> {
    const last = this.#memory.backups.at(-1);
    if (last === undefined) return;
    const { items } = await this.#client.ask<BackupPage>("rita", "GET", "resilience/backups?limit=500");
    const complete = items.filter(({ state }) => state === "complete").map(({ name }) => name);
    if (complete.includes(last) || complete.filter((name) => name > last).length >= keptBackups) return;
    this.#fault(`backup ${last} is gone`);
  }

  async #checkChain(): Promise<void> {
    const report = await this.#client.ask<{ ok: boolean }>("rita", "POST", "audit/verify");
    if (!report.ok) this.#fault(`the chain does not verify: ${JSON.stringify(report)}`);
  }

  /** Keeps the queue short; of each denial the chain is asked after the next kill. */
  async #denyPending(): Promise<void> {
    const { items } = await this.#client.ask<Page<{ id: string }>>("rita", "GET", "approvals?limit=500");
    const deny = (id: string): Promise<unknown> => {
      const change = this.#acknowledged.change("denied", `sweep ${id}`);
      return this.#client.change(change, "rita", ["POST", `approvals/${id}/deny`], { comment: change.mark });
    };
    await whenAllEnd(items.map(({ id }) => deny(id)));
  }

  #isRecorded(change: AskedChange): boolean {
    return this.#records.some((record) => "detail" in record && isRecordOf(change, record));
  }

  #fault(text: string): void {
    this.#faults.push(text);
  }
}
