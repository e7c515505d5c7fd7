import type { Decision } from "../action/decision.ts";
import { defaultRisk, defaultSeverity, type Finding, type Mode, type Severity } from "../action/policy.ts";
import { showText } from "../action/visible-text.ts";
import type { YamlNode, YamlScalar } from "../config/document.ts";
import { type FaultList, type Place, quoteInput } from "../config/fault.ts";
import { toInstant } from "../config/format.ts";
import { type CelEngine, type Expression, ExpressionError } from "./cel/engine.ts";
import { ruleScope, type Scope, type Variables } from "./cel/scope.ts";
import type { ExpressionFault, Shape } from "./cel/syntax.ts";
import { writeValue } from "./cel/tracer.ts";
import { checkNode, memberOf } from "./extension-file.ts";
import { type Match, parseMatch } from "./match.ts";
import { type RuleForm, ruleSchema } from "./schema.ts";

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
  /** The members of its finding that few rules have; undefined where it has none of them. */
  readonly findingExtras: Pick<Finding, "approvals" | "session_risk" | "taints"> | undefined;
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
  readonly faults: FaultList;
}

/** Checks and compiles one rule, which is at `path` in its file and at `position` in the pack. Adds its faults to `context.faults`; returns undefined where the schema has one. */
export function parseRule(node: YamlNode, path: string, position: number, context: RuleContext): Rule | undefined {
  const { faults, namespace, settings, data } = context;
  checkNamespace(node, namespace, faults);
  const form = checkNode(node, ruleSchema, faults, path);
  if (form === undefined) return undefined;
  const match = parseMatch(memberOf(node, "match"), faults);
  checkKeys(node, form, match, faults);
  const compiler = new ExpressionCompiler(context, ruleScope(match.phases, settings, data), presentFields(match));
  const when = compiler.condition(node, "when");
  // What follows counts only where it holds.
  if (when !== undefined) compiler.assume(when.guards);
  const severity = form.severity ?? defaultSeverity[form.decision];
  const risk = form.risk ?? defaultRisk[severity];
  const approvals = form.approvals?.required ?? 1;
  const title = form.title.trim();
  const { id, decision, taints } = form;
  return {
    id,
    position,
    title,
    decision,
    severity,
    risk,
    approvals,
    taints,
    findingExtras: extrasOf(form, approvals),
    requireTicket: form.require_ticket,
    match,
    when,
    unless: compiler.condition(node, "unless"),
    message: compiler.message(node, form.message?.trim() ?? title),
    remediation: form.remediation?.trim(),
    references: form.references.map((each) => each.trim()),
    mode: form.mode,
    expires: toInstant(form.expires),
    exceptions: form.exceptions.map((each, index) => compileException(each, node, index, compiler)),
    place: node.place,
  };
}

/** The facts that are there for every action of a match: those of the one kind that it names. */
function presentFields({ kinds }: Match): ReadonlySet<string> {
  return new Set(kinds?.length === 1 ? kinds.map((kind) => `facts.${kind}`) : []);
}

function extrasOf({ session_risk, taints }: RuleForm, approvals: number): Rule["findingExtras"] {
  if (approvals === 1 && session_risk === null && taints.length === 0) return undefined;
  return {
    ...(approvals === 1 ? {} : { approvals }),
    ...(session_risk === null ? {} : { session_risk }),
    ...(taints.length === 0 ? {} : { taints }),
  };
}

/**
 * Returns the finding of a rule that matches. `tightenOnly`: an `allow` is recorded and never counts. Few rules have
 * extras, and spreading nothing is free.
 */
export function findingOf(rule: Rule, message: string, tightenOnly: boolean): Finding {
  const { id, decision, severity, risk, findingExtras } = rule;
  const mode = tightenOnly && decision === "allow" ? "shadow" : rule.mode;
  const finding = { rule: id, decision, severity, risk, message, mode };
  return findingExtras === undefined ? finding : { ...finding, ...findingExtras };
}

function checkNamespace(node: YamlNode, namespace: string, faults: FaultList): void {
  const id = memberOf(node, "id");
  if (id?.kind !== "scalar" || typeof id.value !== "string" || id.value.startsWith(`${namespace}.`)) return;
  if (namespace === "") return; // A manifest without one is a fault already.
  const expected = `expected \`id\` to begin with the pack's namespace \`${namespace}.\``;
  faults.addAt(id.place, `${expected}, got ${quoteInput(id.value)}`);
}

function checkKeys(node: YamlNode, form: RuleForm, { phases }: Match, faults: FaultList): void {
  // On a rule that allows or blocks, a quorum would look like protection and be none.
  if (form.approvals !== null && form.decision !== "review") {
    faults.addAt(placeOf(node, "approvals"), "expected `approvals` only on a rule that decides review");
  }
  // Listing a tool never taints.
  if (form.taints.length > 0 && phases.includes("list")) {
    faults.addAt(placeOf(node, "taints"), "expected `taints` only on a rule of phase `input` or `output`");
  }
  if (!form.require_ticket) return;
  // A ticket lets an action run: anywhere else, requiring one would protect nothing.
  const place = placeOf(node, "require_ticket");
  if (form.decision === "allow") {
    faults.addAt(place, "expected `require_ticket` only on a rule that reviews or blocks");
  }
  if (phases.some((phase) => phase !== "input")) {
    faults.addAt(place, "expected `require_ticket` only on a rule of phase `input`");
  }
}

function placeOf(node: YamlNode, key: string): Place {
  return memberOf(node, key)?.place ?? node.place;
}

function compileException(
  { id, reason, approved_by: approvedBy, expires }: RuleForm["exceptions"][number],
  rule: YamlNode,
  index: number,
  compiler: ExpressionCompiler,
): RuleException {
  const list = memberOf(rule, "exceptions");
  const node = list?.kind === "list" ? list.items[index] : undefined;
  return {
    id,
    reason: reason.trim(),
    approvedBy: approvedBy.trim(),
    expires: toInstant(expires) ?? "",
    when: node && compiler.condition(node, "when"),
  };
}

/** Compiles the expressions of a rule and places their faults. */
class ExpressionCompiler {
  readonly #context: RuleContext;
  readonly #scope: Scope;
  #present: ReadonlySet<string>;

  /** `present`: the fields that are there for each action that the rule is about. */
  constructor(context: RuleContext, scope: Scope, present: ReadonlySet<string>) {
    this.#context = context;
    this.#scope = scope;
    this.#present = present;
  }

  /** Takes these fields to be there in all that is compiled from now on. */
  assume(fields: ReadonlySet<string>): void {
    this.#present = new Set([...this.#present, ...fields]);
  }

  condition(node: YamlNode, key: string): Expression | undefined {
    const source = memberOf(node, key);
    if (source?.kind !== "scalar") return undefined;
    const compiled = this.#context.engine.compile(String(source.value), this.#scope, this.#present);
    if ("faults" in compiled) {
      this.#report(source, compiled.faults);
      return undefined;
    }
    const { kind } = compiled.expression.shape;
    if (!["bool", "json", "unknown"].includes(kind)) {
      this.#context.faults.addAt(
        source.place,
        `expected \`${key}\` to be true or false, got an expression of type ${kind}`,
      );
    }
    return compiled.expression;
  }

  /** Compiles the rule's message, or its title where it has none. */
  message(node: YamlNode, text: string): Message {
    const compiled = compileMessage(text, this.#context.engine, this.#scope, this.#present);
    if ("render" in compiled) return compiled;
    const source = memberOf(node, "message");
    if (source?.kind === "scalar") this.#report(source, compiled);
    else this.#context.faults.addAt(placeOf(node, "title"), (compiled[0] as ExpressionFault).message);
    return { constant: text, render: () => text };
  }

  #report(scalar: YamlScalar, faults: readonly ExpressionFault[]): void {
    for (const fault of faults) this.#context.faults.addAt(scalar.placeAt(fault.offset), fault.message);
  }
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
  /** The text where nothing is interpolated. */
  readonly constant?: string;
  /**
   * Renders the message for one action; where a value cannot be evaluated, the text as written with a marker, never an
   * error.
   */
  render(variables: Variables): string;
}

/** Parses `text {{ expression }} text`; an expression ends at the first `}}`. */
export function compileMessage(
  text: string,
  engine: CelEngine,
  scope: Scope,
  present?: ReadonlySet<string>,
): Message | readonly ExpressionFault[] {
  const faults: ExpressionFault[] = [];
  const parts: (string | Expression)[] = [];
  let at = 0;
  for (let open = text.indexOf("{{"); open !== -1; open = text.indexOf("{{", at)) {
    const close = text.indexOf("}}", open);
    if (close === -1) return [{ offset: open, message: "expected `}}` after `{{`, got the end of the message" }];
    const source = text.slice(open + 2, close);
    const compiled = engine.compile(source.trim(), scope, present);
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
  if (parts.length === 1) return { constant: text, render: () => text };
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
