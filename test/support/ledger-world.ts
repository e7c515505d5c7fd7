import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Decision } from "../../core/action/decision.ts";
import type { ActionEnvelope } from "../../core/action/envelope.ts";
import type { Evaluation, PolicyVerdict } from "../../core/action/evaluation.ts";
import { type Clock, uuidV7 } from "../../core/action/id.ts";
import { principalId, sessionScope } from "../../core/action/principal.ts";
import { evidenceRules } from "../../core/compose/evidence-rules.ts";
import { KeyFolder } from "../../core/evidence/key/key-folder.ts";
import { WrappingKeyFolder } from "../../core/evidence/key/wrapping-key.ts";
import { Ledger, type LedgerOptions } from "../../core/evidence/ledger.ts";
import { recordRange } from "../../core/evidence/record/key-space.ts";
import type { EvidenceRecord } from "../../core/evidence/record/record.ts";
import { openStore, type Store } from "../../core/store/open.ts";
import { makeAction } from "./action.ts";

/** A new write, with its own id, in the session `label` of its tenant. */
export function newAction(changed: Partial<ActionEnvelope> = {}, label = "work"): ActionEnvelope {
  const tenant = changed.tenant ?? "acme";
  const principal = principalId(tenant, "sha256:00");
  return makeAction({
    id: uuidV7(Date.now(), randomBytes(10)),
    principal: { id: principal, role: "operator", keyId: "ci" },
    session: sessionScope("http", tenant, principal, label),
    tool: "write_file",
    target: "files",
    capability: "write",
    arguments: { path: "/srv/notes/today.md", content: "hello", mode: 420, tags: ["a", "b"] },
    ...changed,
  });
}

/** A new write in the one session of an agent of its own, which has this name. */
export function newAgentAction(name: string): ActionEnvelope {
  const id = principalId("acme", name);
  const principal = { id, role: "operator", keyId: "ci" } as const;
  return newAction({ principal, session: sessionScope("http", "acme", id, name) });
}

/** An evaluation of `action` by one pack. */
export function makeEvaluation(action: ActionEnvelope, decision: Decision = "allow"): Evaluation {
  return {
    id: uuidV7(Date.now(), randomBytes(10)),
    actionId: action.id,
    phase: action.phase,
    decision,
    verdicts: [packVerdict(decision)],
    shadow: [],
    determining: packVerdict(decision).findings,
    byDefault: false,
    approvals: 1,
    risk: 20,
    redactions: [],
    durationUs: 31,
  };
}

function packVerdict(decision: Decision): PolicyVerdict {
  return {
    policy: { kind: "pack", name: "baseline", version: "1.0.0", digest: `sha256:${"ab".repeat(32)}`, signer: null },
    durationUs: 12,
    decision,
    findings: [{ rule: "baseline.write", decision, message: "a write", severity: "low", risk: 20, mode: "enforce" }],
    risk: 20,
  };
}

/** A clock that stands still until told. */
export class TestClock {
  nowMs: number = Date.parse("2026-05-01T10:00:00.000Z");
  readonly now: Clock = () => this.nowMs;
}

/** A ledger on real LevelDB in its own folder; reopened as often as a test likes. */
export class LedgerWorld {
  readonly dir: string;
  readonly clock: TestClock = new TestClock();
  readonly warnings: { readonly message: string; readonly fields: object }[] = [];
  #ledger: Ledger | null = null;
  #store: Store | null = null;

  protected constructor(dir: string) {
    this.dir = dir;
  }

  static async create(): Promise<LedgerWorld> {
    return new LedgerWorld(await mkdtemp(join(tmpdir(), "ledger-")));
  }

  /** On a folder that is there already; the caller's to remove. */
  static at(dir: string): LedgerWorld {
    return new LedgerWorld(dir);
  }

  get highWaterPath(): string {
    return join(this.dir, "high-water");
  }

  get keysPath(): string {
    return join(this.dir, "keys");
  }

  get store(): Store {
    if (this.#store === null) throw new Error("the world has no store open");
    return this.#store;
  }

  get ledger(): Ledger {
    if (this.#ledger === null) throw new Error("the world has no ledger open");
    return this.#ledger;
  }

  async openStore(): Promise<Store> {
    this.#store ??= await openStore({ dir: this.dir, enabled: true });
    return this.#store;
  }

  async open(over: Partial<LedgerOptions> = {}): Promise<Ledger> {
    const store = await this.openStore();
    this.#ledger = await Ledger.open({
      store,
      holdsStore: () => true,
      highWaterPath: this.highWaterPath,
      keys: new KeyFolder(this.keysPath, randomBytes),
      wrappingKeys: new WrappingKeyFolder(this.keysPath, randomBytes),
      recordRules: evidenceRules,
      fieldPolicy: { storeValues: true, storeLabels: true, redactFields: [] },
      clock: this.clock.now,
      random: randomBytes,
      writerId: "gateway-test",
      configDigest: `sha256:${"0".repeat(64)}`,
      onWarning: (message, fields) => this.warnings.push({ message, fields }),
      ...over,
    });
    return this.#ledger;
  }

  /** Ends this process's part; the folder stays. */
  async close(): Promise<void> {
    await this.#ledger?.close();
    await this.#store?.close();
    this.#ledger = null;
    this.#store = null;
  }

  async remove(): Promise<void> {
    await this.close();
    await rm(this.dir, { recursive: true, force: true });
  }

  /** Decides and completes one action. */
  async act(over: Partial<ActionEnvelope> = {}, label = "work"): Promise<ActionEnvelope> {
    const action = newAction(over, label);
    await this.ledger.actions.recordDecision(action, makeEvaluation(action));
    await this.ledger.actions.recordOutcome(action, { status: "success", output: { ok: true } });
    return action;
  }

  /** Every record of the tenant as its exact text, in order. */
  async texts(tenant = "acme"): Promise<string[]> {
    return this.store.values(recordRange(tenant)).all();
  }

  async recordsOf(tenant = "acme"): Promise<EvidenceRecord[]> {
    return (await this.texts(tenant)).map((text) => JSON.parse(text) as EvidenceRecord);
  }
}

/** The error a promise rejects with; fails where it resolves. */
export async function rejection(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error) return error;
    throw new TypeError("expected an Error", { cause: error });
  }
  throw new TypeError("expected a rejection, got a value");
}
