import { setTimeout as sleep } from "node:timers/promises";
import { sessionScope } from "../../core/action/principal.ts";
import type { Acknowledged, AskedChange, Receipts, Settlement } from "./acknowledged.ts";
import { pick, type Random } from "./fuzz.ts";
import {
  type CallEnd,
  GatewayKilled,
  type LoadCall,
  LoadClient,
  type LoadStep,
  loadSteps,
  whenAllEnd,
} from "./load-client.ts";
import { type LoadPerson, type LoadWorld, loadTenant } from "./load-world.ts";

/** A call that waits for review, and the answer of its reviewer. */
export interface HeldCall {
  readonly label: string;
  readonly mark: string;
  /** Null until a client was told. */
  id: string | null;
  review: AskedChange | null;
}

/** A ticket that a client has. */
export interface HeldTicket {
  readonly label: string;
  readonly id: string;
  readonly token: string;
  revocation: AskedChange | null;
}

/** Somebody whom operators stop and release, by the session or by the principal. */
export interface Suspect {
  readonly person: LoadPerson;
  readonly scope: "session" | "principal";
  /** The id of what was stopped last. */
  subject: string;
  isStopped: boolean;
  /** The stop or release that was asked for and not answered. */
  change: AskedChange | null;
}

/** What clients remember from one gateway to the next. */
export interface LoadMemory {
  readonly receipts: Receipts;
  readonly settlement: Settlement;
  readonly suspects: readonly Suspect[];
  /** Of the last load. */
  held: HeldCall[];
  tickets: HeldTicket[];
  /** Calls of earlier loads, whose approvals are over. */
  readonly past: HeldCall[];
  /** Backups that were complete. */
  readonly backups: string[];
}

/** The moment of a kill: so long after a step was asked for, or answered, so often; or after so many answers to anything. */
export interface KillMoment {
  readonly step: LoadStep;
  readonly on: "asked" | "answered";
  readonly count: number;
  readonly delayMs: number;
  readonly maxAnswers: number;
}

/** The uses of each ticket. */
export const maxTicketUses = 2;
const readers = 3;
const writers = 2;
const retries = 4;
/** Done once in a load. */
const rare: readonly LoadStep[] = ["prune", "backup"];
const frequent: readonly LoadStep[] = ["call", "blocked call", "retry", "use", "stream"];

export interface LoadOptions {
  readonly random: Random;
  /** Every label begins with it. */
  readonly name: string;
  readonly moment: KillMoment;
}

/** Agents and operators at work, all at once, before one gateway until it is killed. */
export class MixedLoad {
  readonly #world: LoadWorld;
  readonly #memory: LoadMemory;
  readonly #acknowledged: Acknowledged;
  readonly #random: Random;
  readonly #name: string;
  readonly #client: LoadClient;
  readonly #moment: KillMoment;
  readonly #counts = new Map<string, number>();
  readonly #reached: Promise<void>;
  #reach: () => void = () => undefined;

  constructor(world: LoadWorld, memory: LoadMemory, acknowledged: Acknowledged, { random, name, moment }: LoadOptions) {
    this.#world = world;
    this.#memory = memory;
    this.#acknowledged = acknowledged;
    this.#random = random;
    this.#name = name;
    this.#client = new LoadClient(world, acknowledged, (step, on) => this.#note(step, on));
    this.#moment = moment;
    this.#reached = new Promise((resolve) => {
      this.#reach = resolve;
    });
  }

  /** Returns how often a step was asked for, or answered whole. */
  count(step: LoadStep, on: "asked" | "answered"): number {
    return this.#counts.get(`${step} ${on}`) ?? 0;
  }

  /** Begins to work. Rejects where a client fails, and resolves once each has noticed that the gateway is killed. */
  async run(): Promise<void> {
    const clients = [
      ...Array.from({ length: readers }, (_, at) => this.#read(`${this.#name}-read${at}`)),
      ...Array.from({ length: writers }, (_, at) => this.#write(`${this.#name}-write${at}`)),
      ...this.#memory.suspects.map((suspect) => this.#suspect(suspect)),
      this.#prowl(),
      this.#spendTickets(),
      this.#talk(),
      this.#tend(),
    ];
    await Promise.all(clients.map((client) => client.catch(ignoreKill)));
    await this.#client.hangUp();
  }

  /** Resolves at the moment of the kill. */
  async reachMoment(): Promise<void> {
    await this.#reached;
    await sleep(this.#moment.delayMs);
  }

  /** Returns the steps that were asked for and not answered. */
  get inFlight(): readonly LoadStep[] {
    return loadSteps.filter((step) => this.count(step, "asked") > this.count(step, "answered"));
  }

  #note(step: LoadStep, on: "asked" | "answered"): void {
    this.#counts.set(`${step} ${on}`, this.count(step, on) + 1);
    const { step: wanted, on: when, count, maxAnswers } = this.#moment;
    const answers = loadSteps.reduce((sum, each) => sum + this.count(each, "answered"), 0);
    if (this.count(wanted, when) >= count || answers >= maxAnswers) this.#reach();
  }

  /** Calls what is allowed, one after the other. */
  async #read(label: string): Promise<never> {
    const call = this.#client.agent("reader", label);
    for (let turn = 0; ; turn++) {
      const end = await call("call", "read_echo", { mark: `${label} ${turn}`, wait_ms: this.#upTo(10) });
      expectEnd(end, "served", label);
    }
  }

  /** Tries what is blocked, among what is allowed. */
  async #prowl(): Promise<never> {
    const label = `${this.#name}-prowl`;
    const call = this.#client.agent("prowler", label);
    for (let turn = 0; ; turn++) {
      await call("call", "read_echo", { mark: `${label} ${turn}`, wait_ms: this.#upTo(20) });
      const mark = `${label} key${turn}`;
      this.#memory.receipts.limit(mark, 0);
      const end = await call("blocked call", "read_echo", { mark, path: "/root/.ssh/id_ed25519" });
      expectEnd(end, "refused", mark);
    }
  }

  /** Has calls reviewed, and repeats each several times at once afterwards. */
  async #write(name: string): Promise<never> {
    for (let turn = 0; ; turn++) {
      const label = `${name}.${turn}`;
      const held: HeldCall = { label, mark: `${label} held`, id: null, review: null };
      this.#memory.held.push(held);
      const isApproved = this.#random() < 0.7;
      if (!isApproved) this.#memory.receipts.limit(held.mark, 0);
      const first = this.#client.agent("writer", label);
      const end = await first("hold", "write_echo", heldArguments(held));
      if (end.kind !== "refused" || end.approval?.state !== "pending") throw unexpected(end, "held", label);
      held.id = end.approval.id;
      held.review = this.#acknowledged.change(isApproved ? "approved" : "denied", label);
      const path = `approvals/${held.id}/${isApproved ? "approve" : "deny"}`;
      await this.#change("review", held.review, "rita", ["POST", path], { comment: label });
      const others = Array.from({ length: retries - 1 }, () => this.#client.agent("writer", label));
      const ends = await whenAllEnd([first, ...others].map((call) => call("retry", "write_echo", heldArguments(held))));
      const served = ends.filter(({ kind }) => kind === "served").length;
      if (served !== (isApproved ? 1 : 0)) throw new Error(`${label}: ${served} of ${retries} repetitions were served`);
    }
  }

  /** Is stopped amid a call, tries again in vain, and is released, or not before the next load. */
  async #suspect(suspect: Suspect): Promise<never> {
    const { person, scope } = suspect;
    const label = `${this.#name}-${person}`;
    const [call, other] = [this.#client.agent(person, label), this.#client.agent(person, label)];
    for (let turn = 0; ; turn++) {
      while (suspect.isStopped) {
        await this.#callStopped(call, `${label} stopped${turn++}`);
        if (this.#random() < 0.5) await this.#changeSuspect(suspect, "release", `${label}.${turn}`);
      }
      expectEnd(await call("call", "read_echo", { mark: `${label} ${turn}` }), "served", label);
      const session = sessionScope("http", loadTenant, this.#world.principal(person), label).id;
      suspect.subject = scope === "session" ? session : this.#world.principal(person);
      await whenAllEnd<unknown>([
        other("call", "read_echo", { mark: `${label} running${turn}`, wait_ms: this.#upTo(10) }),
        this.#changeSuspect(suspect, "kill", `${label}.${turn}`),
      ]);
    }
  }

  async #callStopped(call: LoadCall, mark: string): Promise<void> {
    this.#memory.receipts.limit(mark, 0);
    expectEnd(await call("blocked call", "read_echo", { mark }), "refused", mark);
  }

  async #changeSuspect(suspect: Suspect, verb: "kill" | "release", mark: string): Promise<void> {
    const { scope, subject } = suspect;
    const change = this.#acknowledged.change(verb === "kill" ? "killed" : "released", mark);
    suspect.change = change;
    const path = verb === "kill" ? "kills" : "kills/release";
    const why = verb === "kill" ? { note: mark } : { reason: mark };
    await this.#change(verb, change, "rita", ["POST", path], { scope, subject, ...why });
    suspect.isStopped = verb === "kill";
    suspect.change = null;
  }

  /** Presents each ticket more often than it may be used, and some once more when they are revoked. */
  async #spendTickets(): Promise<never> {
    for (let turn = 0; ; turn++) {
      const label = `${this.#name}-ticket.${turn}`;
      const issued = await this.#change<{ token: string; ticket: { id: string } }>(
        "issue",
        this.#acknowledged.change("issued", label),
        "rita",
        ["POST", "tickets"],
        {
          principal: this.#world.principal("holder"),
          tools: ["echo", label],
          targets: ["desk"],
          capabilities: ["read"],
          max_uses: maxTicketUses,
          ttl_seconds: 600,
        },
      );
      const ticket: HeldTicket = { label, id: issued.ticket.id, token: issued.token, revocation: null };
      this.#memory.tickets.push(ticket);
      const mark = `${label} used`;
      this.#memory.receipts.limit(mark, maxTicketUses);
      const isRevoked = this.#random() < 0.5;
      const calls = Array.from({ length: isRevoked ? 1 : maxTicketUses + 2 }, () =>
        this.#client.agent("holder", label, ticket.token),
      );
      await whenAllEnd(calls.map((call) => call("use", "desk_echo", { mark, wait_ms: this.#upTo(10) })));
      if (!isRevoked) continue;
      ticket.revocation = this.#acknowledged.change("revoked", label);
      await this.#change("revoke", ticket.revocation, "rita", ["DELETE", `tickets/${ticket.id}`], { reason: label });
      const late = revokedMark(ticket);
      this.#memory.receipts.limit(late, 0);
      const end = await this.#client.agent("holder", label, ticket.token)("blocked call", "desk_echo", { mark: late });
      expectEnd(end, "refused", late);
    }
  }

  /** Asks a model over and over. */
  async #talk(): Promise<never> {
    const label = `${this.#name}-talk`;
    for (let turn = 0; ; turn++) await this.#client.stream("talker", label, `${label} ${turn}`);
  }

  /** Prunes what was compared with the chain after earlier kills, and makes a backup: in some loads, in any order. */
  async #tend(): Promise<void> {
    const { step } = this.#moment;
    const [prunes, backsUp] = [step === "prune" || this.#random() < 0.4, step === "backup" || this.#random() < 0.2];
    if (step === "backup" && backsUp) await this.#backUp();
    if (prunes) await this.#prune();
    if (step !== "backup" && backsUp) await this.#backUp();
  }

  async #prune(): Promise<void> {
    const before = this.#world.killedAt;
    if (before === null) return;
    const reason = `${this.#name}-prune`;
    await this.#client.during("prune", async () => {
      const asked = this.#acknowledged.change("evidence.prune", before);
      await this.#client.change(asked, "adam", ["POST", "evidence/prune"], { before, reason });
      const pruned = this.#acknowledged.change("pruned", reason);
      for (;;) {
        const { items } = await this.#client.ask<EvidenceJobs>("adam", "GET", "evidence/jobs");
        const [job] = items;
        if (job?.state === "failed") throw new Error(`${reason} failed: ${job.fault}`);
        // Where nothing was left to delete, nothing is recorded.
        if (job?.state === "complete") pruned.isAnswered = (job.result?.records ?? 0) > 0;
        if (job?.state === "complete") return;
        await sleep(5);
      }
    });
  }

  async #backUp(): Promise<void> {
    await this.#client.during("backup", async () => {
      const { name } = await this.#client.ask<{ name: string }>("adam", "POST", "resilience/backup");
      this.#acknowledged.change("backup.create", name).isAnswered = true;
      for (;;) {
        const { items } = await this.#client.ask<BackupPage>("adam", "GET", "resilience/backups?limit=500");
        const state = items.find((each) => each.name === name)?.state;
        if (state === "failed" || state === undefined) throw new Error(`backup ${name} is \`${state}\``);
        if (state === "complete") return void this.#memory.backups.push(name);
        await sleep(5);
      }
    });
  }

  #change<T>(
    step: LoadStep,
    change: AskedChange,
    person: LoadPerson,
    route: readonly ["POST" | "DELETE", string],
    body: object,
  ): Promise<T> {
    return this.#client.during(step, () => this.#client.change<T>(change, person, route, body));
  }

  /** Milliseconds for which the upstream keeps a call. */
  #upTo(ms: number): number {
    return Math.floor(this.#random() * ms);
  }
}

interface EvidenceJobs {
  readonly items: readonly {
    readonly state: string;
    readonly fault: string | null;
    readonly result: { readonly records: number } | null;
  }[];
}

/** Backups as the admin port lists them. */
export interface BackupPage {
  readonly items: readonly { readonly name: string; readonly state: string }[];
}

/** The arguments of a held call: a repetition must have the same. */
export function heldArguments({ mark }: HeldCall): { readonly mark: string; readonly wait_ms: number } {
  return { mark, wait_ms: 10 };
}

/** The mark of calls with a ticket that is revoked. */
export function revokedMark({ label }: HeldTicket): string {
  return `${label} revoked`;
}

/** Throws where a call ended in another way. */
export function expectEnd(end: CallEnd, kind: CallEnd["kind"], what: string): void {
  if (end.kind !== kind) throw unexpected(end, kind, what);
}

function unexpected(end: CallEnd, expected: string, what: string): Error {
  return new Error(`${what}: expected a call to be ${expected}, got ${JSON.stringify(end)}`);
}

export function drawMoment(random: Random): KillMoment {
  const step = pick(loadSteps, random);
  const maxCount = rare.includes(step) ? 1 : frequent.includes(step) ? 12 : 2;
  return {
    step,
    on: random() < 0.5 ? "asked" : "answered",
    count: 1 + Math.floor(random() * maxCount),
    delayMs: random() < 0.4 ? 0 : random() * 30,
    maxAnswers: rare.includes(step) ? 200 : 40,
  };
}

function ignoreKill(error: unknown): void {
  if (!(error instanceof GatewayKilled)) throw error;
}
