import { Document, isMap, isScalar } from "yaml";
import type { Capability } from "../../action/capability.ts";
import { asciiJson, type Json, type JsonObject } from "../../action/json.ts";
import type { ActivePolicy } from "../../action/policy.ts";
import { showText } from "../../action/visible-text.ts";
import { evidenceOperations } from "../../evidence/operation.ts";
import type { EvidenceRecord } from "../../evidence/record/record.ts";
import { isAction } from "../../evidence/record/record-text.ts";
import { policyOperations } from "../../policy/operation.ts";
import { type AdminOptions, fetchItems, fetchWhole } from "../admin-client.ts";
import { print, say } from "../print.ts";
import { renderTable } from "../table.ts";
import { trialPack } from "./adopted-config.ts";

interface ReportOptions extends AdminOptions {
  readonly json?: true;
}

/** Records that are read, the newest sessions first. */
const maxRecords = 50_000;

/** `gateway adopt --report`. */
export async function reportTrial(options: ReportOptions): Promise<void> {
  const policies = await fetchWhole<ActivePolicy>(options, policyOperations.listPolicies);
  const trial = new Trial();
  let left = maxRecords;
  for await (const { id } of fetchItems<{ readonly id: string }>(options, evidenceOperations.listEvidenceSessions)) {
    for await (const record of fetchItems<EvidenceRecord>(options, evidenceOperations.listRecords, { id }, left)) {
      trial.add(record);
      left--;
    }
    if (left <= 0) break;
  }
  const packs = proposePacks(trial, policies);
  if (options.json) return print(asciiJson(summaryOf(trial, packs)));
  if (left <= 0) say(`the ${maxRecords} newest records were read, by session; older ones do not count here`);
  print(renderReport(trial, packs));
}

/** A rule in shadow mode. */
interface RuleCount {
  readonly decision: string;
  readonly count: number;
}

interface ToolCount {
  readonly upstream: string;
  readonly tool: string;
  capability: Capability;
  calls: number;
  held: number;
  blocked: number;
  readonly rules: Set<string>;
}

/** Tools and rules that are counted; further ones are not. */
const maxCounted = 5_000;

/** The result of a trial: the calls, and what rules in shadow mode would have done. */
export class Trial {
  readonly tools = new Map<string, ToolCount>();
  readonly rules = new Map<string, RuleCount>();
  calls = 0;
  held = 0;
  blocked = 0;
  first: string | null = null;
  last: string | null = null;

  /** Counts a record; only decisions about calls count, of tools and of methods that do more than list. */
  add(record: EvidenceRecord): void {
    if (!isAction(record) || record.kind !== "decision") return;
    const { action, evaluation, time } = record;
    if (action.phase !== "input" || action.protocol !== "mcp" || action.tool.endsWith("/list")) return;
    this.calls++;
    if (this.first === null || time < this.first) this.first = time;
    if (this.last === null || time > this.last) this.last = time;
    const tool = this.#toolOf(action.target, action.tool, action.capability);
    const would = evaluation?.would_have ?? [];
    const isBlocked = would.some(({ decision }) => decision === "block");
    if (isBlocked) this.blocked++;
    else if (would.length > 0) this.held++;
    for (const { rule, decision } of would) {
      if (!this.rules.has(rule) && this.rules.size >= maxCounted) continue;
      this.rules.set(rule, { decision, count: (this.rules.get(rule)?.count ?? 0) + 1 });
      tool?.rules.add(rule);
    }
    if (tool === undefined) return;
    tool.calls++;
    if (isBlocked) tool.blocked++;
    else if (would.length > 0) tool.held++;
  }

  #toolOf(upstream: string, tool: string, capability: Capability): ToolCount | undefined {
    const key = JSON.stringify([upstream, tool]);
    const known = this.tools.get(key);
    if (known !== undefined) known.capability = capability;
    if (known !== undefined || this.tools.size >= maxCounted) return known;
    const made = { upstream, tool, capability, calls: 0, held: 0, blocked: 0, rules: new Set<string>() };
    this.tools.set(key, made);
    return made;
  }

  /** The tools that would have been stopped, the most often first. */
  get stopped(): readonly ToolCount[] {
    const found = [...this.tools.values()].filter(({ held, blocked }) => held + blocked > 0);
    return found.toSorted((a, b) => b.held + b.blocked - (a.held + a.blocked));
  }
}

/** A pack as it is proposed to be configured next. */
export interface PackProposal {
  readonly name: string;
  /** Rules that stay in shadow mode: they would hold too much of what agents do. */
  readonly shadowRules: readonly string[];
  readonly reason: string;
}

/** The share of calls from which on people would be asked too often. */
const maxHeldShare = 0.05;
const maxHeldCalls = 2;

/** Proposes to enforce every pack in shadow mode, but for the rules that would hold more than one in twenty calls. What blocks is enforced. */
export function proposePacks({ rules, calls }: Trial, policies: readonly ActivePolicy[]): readonly PackProposal[] {
  const packs = policies.filter(({ kind, mode }) => kind === "pack" && mode === "shadow");
  return packs.map(({ name }) => {
    const own = [...rules].filter(([rule]) => rule.startsWith(`${name}.`));
    const busy = own.filter(
      ([, { decision, count }]) => decision === "review" && count > maxHeldCalls && count > calls * maxHeldShare,
    );
    const stopped = own.reduce((sum, [, { count }]) => sum + count, 0);
    const reason =
      stopped === 0 ? "nothing of it would have held a call" : `its rules would have decided ${stopped} times`;
    return { name, shadowRules: busy.map(([rule]) => rule).toSorted(), reason };
  });
}

const columns = [
  { title: "tool", of: ({ upstream, tool }: ToolCount) => `${upstream}/${tool}` },
  { title: "stated", of: ({ capability }: ToolCount) => capability },
  { title: "calls", of: ({ calls }: ToolCount) => calls, isNumber: true },
  { title: "held", of: ({ held }: ToolCount) => held, isNumber: true },
  { title: "blocked", of: ({ blocked }: ToolCount) => blocked, isNumber: true },
  { title: "by", of: ({ rules }: ToolCount) => [...rules].toSorted().slice(0, 5).join(" ") },
] as const;

/** Tools that the report lists. */
const maxListed = 100;

/** The report as YAML: what would have been held in comments, the proposed next step as settings. */
function renderReport(trial: Trial, packs: readonly PackProposal[]): string {
  const { calls, held, blocked, first, last, stopped } = trial;
  if (calls === 0) return "# no call of a tool is on record yet: let agents work first";
  const table = renderTable(columns, stopped.slice(0, maxListed)).map((line) => `# ${line}`);
  const head = [
    `# of ${calls} calls from ${first} to ${last}, ${held} would have been held for review and ${blocked} blocked`,
    ...(stopped.length === 0 ? [] : ["#", ...table]),
    ...(stopped.length > maxListed ? [`# and ${stopped.length - maxListed} more tools`] : []),
  ];
  return [...head, "", packText(trial, packs), labelText(trial)].join("\n").trimEnd();
}

/** The members of `policy` that change. Default stays `block`: without the trial's pack, what no rule allows is blocked. */
function packText({ rules, calls }: Trial, packs: readonly PackProposal[]): string {
  if (packs.length === 0) return "# no pack is in shadow mode any more";
  const isWhole = packs.every(({ shadowRules }) => shadowRules.length === 0);
  const entries = packs.map(({ name, shadowRules }): JsonObject => {
    const shadow = shadowRules.length === 0 ? {} : { shadow_rules: shadowRules };
    return { path: `policy-packs/${name}`, mode: "enforce", ...shadow };
  });
  const trial: readonly JsonObject[] = isWhole ? [] : [{ path: `policy-packs/${trialPack}`, mode: "enforce" }];
  const document = new Document({ policy: { packs: [...trial, ...entries] } });
  document.commentBefore = isWhole
    ? " Proposed for gateway.yaml in place of `policy.packs`: everything is enforced, and the pack `trial` is gone."
    : " Proposed for gateway.yaml in place of `policy.packs`. The pack `trial` stays until no rule is in shadow mode: it allows\n what the rules in `shadow_rules` would hold.";
  packs.forEach(({ name, reason, shadowRules }, index) => {
    const entry = document.getIn(["policy", "packs", index + trial.length]);
    const key = isMap(entry) ? entry.items[0]?.key : undefined;
    const busy = shadowRules.map((rule) => `${rule} would have held ${rules.get(rule)?.count ?? 0} of ${calls} calls`);
    if (isScalar(key)) key.commentBefore = ` ${[`${name}: ${reason}`, ...busy].map(showText).join("; ")}`;
  });
  return document.toString({ lineWidth: 0 });
}

/** The tools that would have been stopped, with the word that is stated of each: where it does less, a person states that. */
function labelText({ stopped }: Trial): string {
  const labels = new Map<string, Map<string, ToolCount>>();
  for (const tool of stopped.slice(0, maxListed)) {
    const own = labels.get(tool.upstream) ?? new Map<string, ToolCount>();
    labels.set(tool.upstream, own.set(tool.tool, tool));
  }
  if (labels.size === 0) return "";
  const upstreams = Array.from(labels, ([name, tools]): JsonObject => {
    return {
      name,
      capabilities: Object.fromEntries(Array.from(tools, ([tool, { capability }]) => [tool, capability as Json])),
    };
  });
  const document = new Document({ upstreams });
  document.commentBefore =
    " What is stated of these tools. Where one does less, state that in gateway.yaml, and it is held less.";
  [...labels.values()].forEach((tools, index) => {
    const stated = document.getIn(["upstreams", index, "capabilities"]);
    for (const { key, value } of isMap(stated) ? stated.items : []) {
      const tool = isScalar(key) ? tools.get(String(key.value)) : undefined;
      if (tool !== undefined && isScalar(value))
        value.comment = ` ${tool.held} held, ${tool.blocked} blocked of ${tool.calls}`;
    }
  });
  return document.toString({ lineWidth: 0 });
}

function summaryOf(trial: Trial, packs: readonly PackProposal[]): JsonObject {
  const { calls, held, blocked, first, last, stopped } = trial;
  return {
    ok: true,
    from: first,
    to: last,
    calls,
    held,
    blocked,
    tools: stopped.map(({ rules, ...tool }) => ({ ...tool, rules: [...rules].toSorted() })),
    packs: packs.map(({ name, shadowRules, reason }) => ({ name, mode: "enforce", shadow_rules: shadowRules, reason })),
  };
}
