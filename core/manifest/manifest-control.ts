import { contentDigest } from "../action/canonical-json.ts";
import { strictest } from "../action/decision.ts";
import { type ActionEnvelope, everyUpstream } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { deepFreeze } from "../action/json.ts";
import type { Participant } from "../action/participant.ts";
import type { Finding, Mode, Policy, PolicyRef, Severity, Verdict } from "../action/policy.ts";
import { readPublicKey } from "../action/signing-key.ts";
import type { Store } from "../store/open.ts";
import { type ManifestLog, ManifestStore } from "./manifest-store.ts";
import type { Declaration, Departure, DriftKind } from "./plan.ts";
import type { TaskSigner } from "./reference.ts";
import { TaskBinding, type TaskBindingOptions } from "./task-binding.ts";

/** The part of the ledger that manifests use. */
interface ManifestLedger extends ManifestLog {
  status(): readonly { readonly tenant: string }[];
  refuse(tenant: string, reason: string): void;
}

interface ManifestControlOptions {
  readonly store: Store;
  readonly ledger: ManifestLedger;
  readonly clock: Clock;
  readonly drift: DriftRule;
  /** True where actions without a task are blocked. */
  readonly requireTask: boolean;
  /** `publicKey`: the base64 of an Ed25519 key. */
  readonly taskSigners: readonly { readonly id: string; readonly tenant: string; readonly publicKey: string }[];
  readonly hasActed: TaskBindingOptions["hasActed"];
}

interface ManifestControl {
  readonly manifests: ManifestStore;
  readonly taskBinding: TaskBinding;
  readonly driftPolicy: DriftPolicy;
}

/** Loads all manifests with the sessions bound to them and the policy that compares. Refuses a tenant whose manifests are damaged. */
export async function openManifestControl(options: ManifestControlOptions): Promise<ManifestControl> {
  const { store, ledger, clock, drift, requireTask, taskSigners, hasActed } = options;
  const manifests = new ManifestStore({ store, log: ledger, clock });
  for (const { tenant } of ledger.status()) {
    try {
      await manifests.load(tenant);
    } catch (cause) {
      ledger.refuse(tenant, `its task manifests cannot be read: ${GatewayError.from(cause).message}`);
    }
  }
  const signers = taskSigners.map(signerOf);
  return {
    manifests,
    taskBinding: new TaskBinding({ store, log: ledger, clock, manifests, signers, hasActed }),
    driftPolicy: new DriftPolicy({ rule: drift, requireTask, manifests, clock }),
  };
}

function signerOf({ id, tenant, publicKey }: ManifestControlOptions["taskSigners"][number]): TaskSigner {
  const known = readPublicKey(publicKey);
  if (known?.key.asymmetricKeyType !== "ed25519") throw new TypeError(`signerOf: expected an Ed25519 key of \`${id}\``);
  return { id, tenant, key: known.key };
}

/** The reaction to actions that depart from the manifest of their task. */
export interface DriftRule {
  /** For manifests that name no mode of their own. */
  readonly mode: Mode;
  /** For unexpected tools, resources and write domains. Expired manifests and surplus actions are always blocked. */
  readonly decision: "review" | "block";
}

interface DriftPolicyOptions {
  readonly rule: DriftRule;
  readonly requireTask: boolean;
  readonly manifests: { find(tenant: string, task: string): Declaration | undefined };
  readonly clock: Clock;
}

interface Weight {
  readonly severity: Severity;
  readonly risk: number;
  /** Risk points of the session; four unexpected tools, or three unexpected domains, reach the default threshold. */
  readonly sessionRisk: number;
  readonly pointer?: string;
}

const weights: Readonly<Record<DriftKind, Weight>> = {
  tool: { severity: "medium", risk: 40, sessionRisk: 20, pointer: "/tool" },
  resource: { severity: "medium", risk: 40, sessionRisk: 20, pointer: "/arguments" },
  write_domain: { severity: "high", risk: 60, sessionRisk: 30, pointer: "/arguments" },
  argument: { severity: "high", risk: 60, sessionRisk: 30, pointer: "/arguments" },
  host: { severity: "high", risk: 60, sessionRisk: 30, pointer: "/arguments" },
  address: { severity: "high", risk: 60, sessionRisk: 30, pointer: "/arguments" },
  actions: { severity: "high", risk: 50, sessionRisk: 10 },
  expired: { severity: "high", risk: 50, sessionRisk: 10 },
};

const abstention: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });

const taskRequired: Verdict = deepFreeze({
  decision: "block",
  findings: [
    {
      rule: "session.task_required",
      decision: "block",
      message:
        "expected a session that works on a task: declare a manifest for it, or send a task reference with its first call",
      severity: "high",
      risk: 50,
      mode: "enforce",
      session_risk: 0,
    },
  ],
  risk: 50,
});

/**
 * Compares each action of a task with the manifest of the task. Abstains for expected actions: other policies decide. Blocks
 * actions without a task where one is required.
 */
export class DriftPolicy implements Policy {
  readonly ref: PolicyRef = Object.freeze({
    kind: "session",
    name: "task-manifest",
    version: "1",
    digest: contentDigest("task-manifest-v1"),
    signer: null,
  });
  readonly mode: Mode = "enforce";
  readonly #options: DriftPolicyOptions;

  constructor(options: DriftPolicyOptions) {
    this.#options = options;
  }

  /** Outputs are not compared. */
  readsOutput(): boolean {
    return false;
  }

  /** Lists are no departure: tools outside the plan are still listed. */
  evaluate(action: ActionEnvelope): Verdict {
    const { task, phase, target, tenant } = action;
    if (phase !== "input" || target === everyUpstream) return abstention;
    const { manifests, clock, rule, requireTask } = this.#options;
    if (task === null) return requireTask ? taskRequired : abstention;
    const declaration = manifests.find(tenant, task);
    // The session stays bound to a task whose manifest was withdrawn.
    const departures = declaration?.plan.findDepartures(action, clock()) ?? [withdrawn];
    const mode = declaration?.manifest.mode ?? rule.mode;
    return departures.length === 0 ? abstention : verdictOf(departures.map((each) => this.#finding(task, each, mode)));
  }

  #finding(task: string, { kind, text }: Departure, mode: Mode): Finding {
    const { severity, risk, sessionRisk, pointer } = weights[kind];
    const isOver = kind === "actions" || kind === "expired";
    return {
      rule: `session.drift.${kind}`,
      decision: isOver ? "block" : this.#options.rule.decision,
      message: `task \`${task}\`: ${text}`,
      severity,
      risk,
      mode,
      ...(pointer === undefined ? {} : { pointer }),
      session_risk: sessionRisk,
    };
  }
}

/** Holds or blocks actions that depart from the manifest of their task. */
export function manifestParticipant(driftPolicy: DriftPolicy): Participant {
  return { name: "manifest", policy: driftPolicy };
}

const withdrawn: Departure = { kind: "expired", text: "the manifest was withdrawn" };

function verdictOf(findings: readonly Finding[]): Verdict {
  const enforced = findings.filter(({ mode }) => mode === "enforce");
  if (enforced.length === 0) return { decision: "abstain", findings, risk: 0 };
  return {
    decision: enforced.map(({ decision }) => decision).reduce(strictest),
    findings,
    risk: Math.max(...enforced.map(({ risk }) => risk)),
  };
}
