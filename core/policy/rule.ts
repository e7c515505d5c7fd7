import { type Decision, decisions } from "../action/decision.ts";
import {
  type Finding,
  type Mode,
  maxApprovals,
  maxTaints,
  modes,
  type Severity,
  severities,
} from "../action/policy.ts";
import { showText } from "../action/visible-text.ts";
import { type CelEngine, type Expression, ExpressionError } from "./cel/engine.ts";
import { ruleScope, type Scope, type Variables } from "./cel/scope.ts";
import type { ExpressionFault, Shape } from "./cel/syntax.ts";
import { writeValue } from "./cel/tracer.ts";
import type { Faults, Place } from "./fault.ts";
import { type Match, parseMatch } from "./match.ts";
import type { YamlNode, YamlScalar } from "./yaml/node.ts";
import { MapReader, type TextRule } from "./yaml/reader.ts";

/** A named permission with an expiry that lifts one rule for some actions. */
export interface RuleException {
  readonly id: string;
  readonly reason: string;
  readonly approvedBy: string;
  /** `YYYY-MM-DDTHH:MM:SS.mmmZ`; without effect from then on. */
  readonly expires: string;
  readonly when: Expression | undefined;
}

/** One statement of a pack. */
export interface Rule {
  readonly id: string;
  readonly position: number;
  readonly title: string;
  readonly decision: Decision;
  readonly severity: Severity;
  readonly risk: number;
  /** The number of reviewers who must approve; 1 on rules that do not review. */
  readonly approvals: number;
  /** The points it adds to the session's risk, where given. */
  readonly sessionRisk: number | undefined;
  /** The taints it adds to the session where it matches. */
  readonly taints: readonly string[];
  /** True where a capability ticket that covers the action lifts it. */
  readonly requireTicket: boolean;
  readonly match: Match;
  readonly when: Expression | undefined;
  readonly unless: Expression | undefined;
  readonly message: Message;
  readonly remediation: string | undefined;
  readonly references: readonly string[];
  readonly mode: Mode;
  /** `YYYY-MM-DDTHH:MM:SS.mmmZ`; matches nothing from then on. */
  readonly expires: string | undefined;
  readonly exceptions: readonly RuleException[];
  readonly place: Place;
}

/** The context for compiling the rules of one pack. */
export interface RuleContext {
  readonly namespace: string;
  readonly engine: CelEngine;
  readonly settings: Shape;
  readonly data: Shape;
  readonly faults: Faults;
}

const ruleKeys = [
  "id",
  "title",
  "decision",
  "severity",
  "risk",
  "approvals",
  "session_risk",
  "taints",
  "require_ticket",
  "match",
  "when",
  "unless",
  "message",
  "remediation",
  "mode",
  "references",
  "expires",
  "exceptions",
] as const;

const exceptionKeys = ["id", "reason", "approved_by", "expires", "when"] as const;

const idRule = {
  max: 128,
  pattern: /^[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)*$/,
  shape: "words of a–z, 0–9 and `-`, joined by `.`",
} as const;
const sentence = { max: 1_024 } as const;
/** A taint. */
export const taintRule: TextRule = { max: 64, pattern: /^[a-z][a-z0-9-]*$/, shape: "a word of a–z, 0–9 and `-`" };

const usualSeverity: Readonly<Record<Decision, Severity>> = { allow: "info", review: "medium", block: "high" };
const usualRisk: Readonly<Record<Severity, number>> = { info: 0, low: 20, medium: 40, high: 70, critical: 90 };

/** Reads and compiles one rule; adds its faults to `context.faults`. */
export function parseRule(node: YamlNode, position: number, context: RuleContext): Rule {
  const reader = new MapReader(node, "a rule", ruleKeys, context.faults);
  const id = reader.text("id", idRule);
  if (id !== "" && !id.startsWith(`${context.namespace}.`)) {
    reader.fault("id", `expected \`id\` to begin with the pack's namespace \`${context.namespace}.\`, got \`${id}\``);
  }
  const title = reader.text("title", { max: 160 });
  const decision = reader.choice("decision", decisions, undefined);
  const severity = reader.choice("severity", severities, usualSeverity[decision]);
  const match = parseMatch(reader.get("match"), node, context.faults);
  const compiler = new ExpressionCompiler(context, ruleScope(match.phases, context.settings, context.data));
  return {
    id,
    position,
    title,
    decision,
    severity,
    risk: reader.integer("risk", 0, 100, usualRisk[severity]),
    approvals: parseApprovals(reader, decision, context.faults),
    sessionRisk: reader.get("session_risk") === undefined ? undefined : reader.integer("session_risk", 0, 100, 0),
    taints: parseTaints(reader, match),
    requireTicket: parseRequireTicket(reader, decision, match),
    match,
    when: compiler.condition(reader, "when"),
    unless: compiler.condition(reader, "unless"),
    message: compiler.message(reader, title),
    remediation: reader.optionalText("remediation", sentence),
    references: reader.texts("references", { max: 256 }),
    mode: reader.choice("mode", modes, "enforce"),
    expires: reader.instant("expires", false),
    exceptions: reader.items("exceptions").map((item) => parseException(item, compiler, context.faults)),
    place: reader.place,
  };
}

/** Refuses a quorum on rules that allow or block: it would look like protection and be none. */
function parseApprovals(rule: MapReader, decision: Decision, faults: Faults): number {
  const node = rule.get("approvals");
  if (node === undefined) return 1;
  if (decision !== "review") rule.fault("approvals", "expected `approvals` only on a rule that decides review");
  const reader = new MapReader(node, "`approvals`", ["required"], faults);
  if (node.kind === "map" && reader.get("required") === undefined) {
    reader.fault("required", `expected \`required\` to be a whole number from 1 to ${maxApprovals}, got nothing`);
  }
  return reader.integer("required", 1, maxApprovals, 1);
}

/** Refuses taints in phase `list`: only calls and outputs taint a session. */
function parseTaints(rule: MapReader, { phases }: Match): readonly string[] {
  const taints = rule.texts("taints", taintRule);
  if (taints.length > maxTaints) rule.fault("taints", `expected at most ${maxTaints} taints, got ${taints.length}`);
  if (taints.length > 0 && phases.includes("list"))
    rule.fault("taints", "expected `taints` only on a rule of phase `input` or `output`");
  return taints;
}

/** Allows `require_ticket` only where a ticket has an effect: on rules of phase `input` that review or block. */
function parseRequireTicket(rule: MapReader, decision: Decision, { phases }: Match): boolean {
  const isRequired = rule.flag("require_ticket", false);
  if (!isRequired) return false;
  if (decision === "allow")
    rule.fault("require_ticket", "expected `require_ticket` only on a rule that reviews or blocks");
  if (phases.some((phase) => phase !== "input"))
    rule.fault("require_ticket", "expected `require_ticket` only on a rule of phase `input`");
  return true;
}

function parseException(node: YamlNode, compiler: ExpressionCompiler, faults: Faults): RuleException {
  const reader = new MapReader(node, "an exception", exceptionKeys, faults);
  return {
    id: reader.text("id", idRule),
    reason: reader.text("reason", sentence),
    approvedBy: reader.text("approved_by", { max: 160 }),
    expires: reader.instant("expires", true) ?? "",
    when: compiler.condition(reader, "when"),
  };
}

/** Compiles the expressions of a rule and places their faults. */
class ExpressionCompiler {
  readonly #context: RuleContext;
  readonly #scope: Scope;

  constructor(context: RuleContext, scope: Scope) {
    this.#context = context;
    this.#scope = scope;
  }

  condition(reader: MapReader, key: string): Expression | undefined {
    const source = reader.source(key);
    if (source === undefined) return undefined;
    const compiled = this.#context.engine.compile(String(source.value), this.#scope);
    if ("faults" in compiled) {
      this.#report(source, compiled.faults);
      return undefined;
    }
    const { kind } = compiled.expression.shape;
    if (!["bool", "json", "unknown"].includes(kind)) {
      this.#context.faults.add(
        source.place,
        `expected \`${key}\` to be true or false, got an expression of type ${kind}`,
      );
    }
    return compiled.expression;
  }

  message(reader: MapReader, title: string): Message {
    const node = reader.get("message");
    const text = reader.optionalText("message", sentence) ?? title;
    const compiled = compileMessage(text, this.#context.engine, this.#scope);
    if ("render" in compiled) return compiled;
    if (node?.kind === "scalar") this.#report(node, compiled);
    else reader.fault("title", (compiled[0] as ExpressionFault).message);
    return { render: () => text };
  }

  #report(scalar: YamlScalar, faults: readonly ExpressionFault[]): void {
    for (const fault of faults) this.#context.faults.add(scalar.placeAt(fault.offset), fault.message);
  }
}

/** The finding of a rule that matches. */
export function findingOf(rule: Rule, message: string, mode: Mode): Finding {
  const { id, decision, severity, risk, approvals, sessionRisk, taints } = rule;
  return {
    rule: id,
    decision,
    message,
    severity,
    risk,
    mode,
    ...(approvals === 1 ? {} : { approvals }),
    ...(sessionRisk === undefined ? {} : { session_risk: sessionRisk }),
    ...(taints.length === 0 ? {} : { taints }),
  };
}

/**
 * The finding of a rule that could not be evaluated: it blocks, whatever the rule would have decided, and taints as if
 * it matched.
 */
export function failureOf(rule: Rule): Finding {
  const message = `rule \`${rule.id}\` could not be evaluated, so the action is blocked`;
  const { id, severity, risk, mode, taints } = rule;
  return { rule: id, decision: "block", message, severity, risk, mode, ...(taints.length === 0 ? {} : { taints }) };
}

const maxInterpolations = 16;
const unevaluated = "[this message could not be evaluated]";

/** A rule's message: text with interpolated values of the action. */
interface Message {
  /**
   * Renders the message for one action; where a value cannot be evaluated, the text as written with a marker, never an
   * error.
   */
  render(variables: Variables): string;
}

/** Parses `text {{ expression }} text`; an expression ends at the first `}}`. */
export function compileMessage(text: string, engine: CelEngine, scope: Scope): Message | readonly ExpressionFault[] {
  const faults: ExpressionFault[] = [];
  const parts: (string | Expression)[] = [];
  let at = 0;
  for (let open = text.indexOf("{{"); open !== -1; open = text.indexOf("{{", at)) {
    const close = text.indexOf("}}", open);
    if (close === -1) return [{ offset: open, message: "expected `}}` after `{{`, got the end of the message" }];
    const source = text.slice(open + 2, close);
    const compiled = engine.compile(source.trim(), scope);
    const start = open + 2 + (source.length - source.trimStart().length);
    if ("faults" in compiled)
      faults.push(...compiled.faults.map((fault) => ({ ...fault, offset: start + fault.offset })));
    else parts.push(text.slice(at, open), compiled.expression);
    at = close + 2;
  }
  parts.push(text.slice(at));
  if (parts.length > maxInterpolations * 2 + 1) {
    faults.push({ offset: 0, message: `expected at most ${maxInterpolations} expressions in a message, got more` });
  }
  if (faults.length > 0) return faults;
  return {
    render(variables) {
      try {
        let rendered = "";
        for (const part of parts) {
          if (typeof part === "string") {
            rendered += part;
            continue;
          }
          const value = part.evaluate(variables);
          rendered += showText(typeof value === "string" ? value : writeValue(value));
        }
        return rendered;
      } catch (error) {
        if (error instanceof ExpressionError) return `${text} ${unevaluated}`;
        throw error;
      }
    },
  };
}
