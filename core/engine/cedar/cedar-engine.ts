import type { ActionEnvelope } from "../../action/envelope.ts";
import type { ExplainedRule, PolicyExplanation, RuleExplainer } from "../../action/explanation.ts";
import type { Finding, Verdict } from "../../action/policy.ts";
import { ParserInstance } from "../../fact/parser-instance.ts";
import { EngineError } from "../engine-fault.ts";
import { type Engine, explainBy } from "../engine-policy.ts";
import { notPermitted } from "../engine-reason.ts";
import type { EntityGraph } from "./entity-graph.ts";
import { type Cedar, openCedar } from "./library.ts";
import { type CedarPolicyText, scopeOf } from "./policy-text.ts";
import { actionName, type CedarRequest, readRequest, toolName } from "./request.ts";
import type { CedarSchema } from "./schema.ts";

/** The content of a folder, checked. */
export interface CedarContent {
  /** The prefix of its rules. */
  readonly name: string;
  readonly schema: CedarSchema;
  readonly policies: readonly CedarPolicyText[];
  readonly graph: EntityGraph;
}

const schemaName = "schema";

/**
 * A folder of Cedar policies: a pure function of the envelope. Deny blocks, also where no policy permits. A policy that fails
 * blocks, whatever Cedar answers: Cedar leaves out a `forbid` that fails.
 */
export class CedarEngine implements Engine {
  readonly type = "cedar";
  readonly explainer: RuleExplainer;
  readonly #content: CedarContent;
  readonly #shards: ShardPlan;
  readonly #byId: ReadonlyMap<string, CedarPolicyText>;
  readonly #instance: ParserInstance<Cedar>;

  private constructor(content: CedarContent) {
    this.#content = content;
    this.#shards = new ShardPlan(content.policies);
    this.#byId = new Map(content.policies.map((policy) => [policy.cedarId, policy]));
    this.#instance = new ParserInstance(() => this.#open());
    this.explainer = {
      explain: (action) => this.#explain(action),
      describeRules: (ids) => this.#describe(ids),
    };
  }

  /** Parses schema and policies into an instance of Cedar of its own. */
  static async open(content: CedarContent): Promise<CedarEngine> {
    const engine = new CedarEngine(content);
    await engine.#instance.load();
    return engine;
  }

  judge(action: ActionEnvelope): Verdict {
    const name = actionName(action);
    if (!this.#content.schema.contexts.has(name)) {
      return notPermitted(this.#content.name, `the schema of \`${this.#content.name}\` declares no action \`${name}\``);
    }
    const { decision, reasons } = this.#ask(action);
    const findings = reasons.map((policy) => this.#findingOf(policy));
    if (decision === "deny" && findings.length === 0) {
      return notPermitted(this.#content.name);
    }
    const isHeld = findings.some((finding) => finding.decision === "review");
    const risk = Math.max(0, ...findings.map((finding) => finding.risk));
    return { decision: decision === "deny" ? "block" : isHeld ? "review" : "allow", findings, risk };
  }

  /** Asks Cedar with the policies that can apply. Throws EngineError where one fails, or Cedar refuses the request. */
  #ask(action: ActionEnvelope): { readonly decision: "allow" | "deny"; readonly reasons: readonly CedarPolicyText[] } {
    const { schema, graph } = this.#content;
    const request = readRequest(action, schema, graph);
    const answer = this.#instance.use(
      (cedar) =>
        cedar.statefulIsAuthorized({
          ...(request as Required<CedarRequest>),
          preparsedSchemaName: schemaName,
          validateRequest: true,
          preparsedPolicySetId: this.#shards.find(request.action.id, toolName(action)),
        }),
      () => false,
    );
    if (answer === null) throw new EngineError("lost", "Cedar broke off; another instance is being made");
    if (answer.type === "failure") throw new EngineError("input", withoutQuotes(answer.errors[0]?.message ?? ""));
    const { decision, diagnostics } = answer.response;
    const [failed] = diagnostics.errors;
    if (failed !== undefined) {
      const text = withoutQuotes(failed.error.message);
      throw new EngineError("evaluation", `${this.#nameOf(failed.policyId)} failed: ${text}`);
    }
    const reasons = diagnostics.reason.map((id) => this.#byId.get(id)).filter((policy) => policy !== undefined);
    if (reasons.length !== diagnostics.reason.length) throw new EngineError("answer", "Cedar names an unknown policy");
    return { decision, reasons: reasons.toSorted((a, b) => a.place.line - b.place.line) };
  }

  #nameOf(cedarId: string): string {
    const policy = this.#byId.get(cedarId);
    return policy === undefined ? cedarId : `policy \`${policy.id}\` (${policy.place.file}:${policy.place.line})`;
  }

  #findingOf({ id, decision, reason, severity, risk, approvals }: CedarPolicyText): Finding {
    const finding = {
      rule: `${this.#content.name}.${id}`,
      decision,
      message: reason,
      severity,
      risk,
      mode: "enforce",
    } as const;
    return approvals === undefined ? finding : { ...finding, approvals };
  }

  async #open(): Promise<Cedar> {
    const { schema } = this.#content;
    const cedar = await openCedar();
    const answers = [
      cedar.preparseSchema(schemaName, schema.text),
      ...this.#shards.all.map(({ name, policies }) => cedar.preparsePolicySet(name, { staticPolicies: policies })),
    ];
    if (answers.some(({ type }) => type === "failure")) throw new TypeError("open: expected what was checked to parse");
    return cedar;
  }

  #explain(action: ActionEnvelope): PolicyExplanation {
    return explainBy(() => this.#describe(this.judge(action).findings.map(({ rule }) => rule)));
  }

  #describe(ids: readonly string[]): readonly ExplainedRule[] {
    const { name } = this.#content;
    return this.#content.policies
      .filter(({ id }) => ids.includes(`${name}.${id}`))
      .map(({ id, reason, decision, severity, json, place }) => ({
        ...{ rule: `${name}.${id}`, title: reason, decision, severity, mode: "enforce" as const },
        ...{ file: place.file, line: place.line, outcome: "held" as const },
        why: `Cedar names this ${json.effect} as a reason of its answer`,
        ...{ mismatches: [], conditions: [] },
      }));
  }
}

/** Cedar's errors quote values of the action in backticks. */
function withoutQuotes(message: string): string {
  return message.replace(/`[\s\S]*`/, "`…`").slice(0, 512);
}

/** A set of policies that Cedar has parsed under a name. */
interface Shard {
  readonly name: string;
  readonly policies: Record<string, string>;
}

/** Policies in all shards together: beyond it, policies are not sorted by tool. */
const maxSharded = 20_000;

/**
 * The policies by the action and the tool that their scope names with `==`. Cedar looks at every policy of a set, so that a set
 * without those of other actions and tools gives the same answer sooner.
 */
class ShardPlan {
  readonly all: readonly Shard[];
  readonly #names: ReadonlySet<string>;

  constructor(policies: readonly CedarPolicyText[]) {
    const scoped = policies.map((policy) => ({ policy, ...scopeOf(policy.json) }));
    const actions = [null, ...new Set(scoped.flatMap(({ action }) => action ?? []))];
    const tools = [null, ...new Set(scoped.flatMap(({ tool }) => tool ?? []))];
    const shards = (kept: readonly (string | null)[], isByTool: boolean): Shard[] =>
      actions.flatMap((action) =>
        kept.map((tool) => {
          const fitting = scoped.filter(
            (each) =>
              (each.action === null || each.action === action) &&
              (!isByTool || each.tool === null || each.tool === tool),
          );
          return {
            name: shardName(action, tool),
            policies: Object.fromEntries(fitting.map(({ policy }) => [policy.cedarId, policy.text])),
          };
        }),
      );
    const byTool = shards(tools, true);
    const total = byTool.reduce((sum, { policies: own }) => sum + Object.keys(own).length, 0);
    this.all = total <= maxSharded ? byTool : shards([null], false);
    this.#names = new Set(this.all.map(({ name }) => name));
  }

  /** Returns the name of the set with every policy that can apply to this action and tool. */
  find(action: string, tool: string): string {
    const [ofAction, ofTool] = [JSON.stringify(["Action", action]), JSON.stringify(["Tool", tool])];
    const names = [shardName(ofAction, ofTool), shardName(ofAction, null), shardName(null, ofTool)];
    return names.find((name) => this.#names.has(name)) ?? shardName(null, null);
  }
}

function shardName(action: string | null, tool: string | null): string {
  return JSON.stringify([action, tool]);
}
