import { strictest } from "../kernel/decision.ts";
import { contentDigest } from "../kernel/digest.ts";
import { type ActionEnvelope, everyUpstream } from "../kernel/envelope.ts";
import type { Finding, Mode, Policy, PolicyRef, Severity, Verdict } from "../kernel/policy.ts";
import type { Clock } from "../kernel/port.ts";
import type { Declaration } from "./declaration.ts";
import type { Departure, DriftKind } from "./plan.ts";

/** What becomes of actions that depart from their task's manifest. */
export interface DriftRule {
  /** For manifests that name no mode of their own. */
  readonly mode: Mode;
  /** Of tools, resources and write domains that are not expected. What is over, or too much, is blocked. */
  readonly decision: "review" | "block";
}

export interface DriftPolicyOptions {
  readonly rule: DriftRule;
  readonly manifests: { find(tenant: string, task: string): Declaration | undefined };
  readonly clock: Clock;
}

interface Weight {
  readonly severity: Severity;
  readonly risk: number;
  /** Points for the session; four strange tools, or three strange domains, come to the usual threshold. */
  readonly sessionRisk: number;
  readonly pointer?: string;
}

const weights: Readonly<Record<DriftKind, Weight>> = {
  tool: { severity: "medium", risk: 40, sessionRisk: 20, pointer: "/tool" },
  resource: { severity: "medium", risk: 40, sessionRisk: 20, pointer: "/arguments" },
  write_domain: { severity: "high", risk: 60, sessionRisk: 30, pointer: "/arguments" },
  actions: { severity: "high", risk: 50, sessionRisk: 10 },
  expired: { severity: "high", risk: 50, sessionRisk: 10 },
};

const abstention: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });

/** Compares each action of a task with the task's manifest. It permits nothing: what is expected, other policies decide. */
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

  /** What comes back is no action. */
  readsOutput(): boolean {
    return false;
  }

  /** Asking what there is, is no departure: tools outside the plan are still listed. */
  evaluate(action: ActionEnvelope): Verdict {
    const { task, phase, target, tenant } = action;
    if (task === null || phase !== "input" || target === everyUpstream) return abstention;
    const { manifests, clock, rule } = this.#options;
    const declaration = manifests.find(tenant, task);
    // Its session was bound to it: that it has no plan any more sets it not free.
    const departures = declaration?.plan.departures(action, clock()) ?? [withdrawn];
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
