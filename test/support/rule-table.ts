import { readdirSync } from "node:fs";
import { join } from "node:path";
import { compilePack } from "../../core/policy/pack.ts";
import type { Rule } from "../../core/policy/rule.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { optionsFor } from "./policy-pack.ts";

/** A risk of a published list, and what is done about it where no rule is. */
interface ListedRisk {
  readonly title: string;
  readonly otherwise: string;
}

const nowhere = "nothing";

const agentic: Readonly<Record<string, ListedRisk>> = {
  "OWASP-ASI01": { title: "Agent goal hijack", otherwise: nowhere },
  "OWASP-ASI02": { title: "Tool misuse and exploitation", otherwise: nowhere },
  "OWASP-ASI03": { title: "Identity and privilege abuse", otherwise: nowhere },
  "OWASP-ASI04": { title: "Agentic supply chain", otherwise: "signed packs and plugins" },
  "OWASP-ASI05": { title: "Unexpected code execution", otherwise: nowhere },
  "OWASP-ASI06": {
    title: "Memory and context poisoning",
    otherwise: "taints of sessions, for what comes through the gateway alone",
  },
  "OWASP-ASI07": {
    title: "Insecure communication between agents",
    otherwise: "keys and OAuth towards the gateway; agents among themselves are not seen",
  },
  "OWASP-ASI08": { title: "Cascading failures", otherwise: "limits, fair shares and circuit breakers" },
  "OWASP-ASI09": { title: "Exploitation of people's trust", otherwise: nowhere },
  "OWASP-ASI10": { title: "Rogue agents", otherwise: nowhere },
};

const mcp: Readonly<Record<string, ListedRisk>> = {
  "OWASP-MCP01": { title: "Token mismanagement and secret exposure", otherwise: nowhere },
  "OWASP-MCP02": { title: "Privilege escalation by scope creep", otherwise: "roles, task manifests and tickets" },
  "OWASP-MCP03": { title: "Tool poisoning", otherwise: "approvals end where a definition changes" },
  "OWASP-MCP04": {
    title: "Software supply chain attacks",
    otherwise: "signed packs and plugins; servers are the operator's choice",
  },
  "OWASP-MCP05": { title: "Command injection and execution", otherwise: nowhere },
  "OWASP-MCP06": {
    title: "Prompt injection by contextual payloads",
    otherwise: "the plugin `prompt-injection`, and taints",
  },
  "OWASP-MCP07": { title: "Insufficient authentication and authorization", otherwise: "keys, roles and OAuth" },
  "OWASP-MCP08": { title: "Lack of audit and telemetry", otherwise: "signed evidence, metrics and traces" },
  "OWASP-MCP09": { title: "Shadow MCP servers", otherwise: "none is reached that is not in the configuration" },
  "OWASP-MCP10": {
    title: "Context injection and over-sharing",
    otherwise: "the plugins `pii-guard` and `secret-egress`",
  },
};

/** Every rule of every shipped pack, and the published risks with the rules that are about them, as a page of Markdown. */
export async function ruleReference(notice: string): Promise<string> {
  const root = join(repositoryRoot, "policy-packs");
  const names = readdirSync(root, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [entry.name] : [],
  );
  const packs = await Promise.all(
    names.sort().map(async (name) => (await compilePack(await optionsFor(join(root, name)))).pack),
  );
  const rules = packs.flatMap((pack) => pack.rules);
  const parts = packs.map((pack) => `## ${pack.ref.name}\n\n${pack.title}.\n\n${ruleRows(pack.rules)}`);
  return [
    `# Rules of the shipped packs\n\n${notice}`,
    ...parts,
    `## OWASP Top 10 for agentic applications\n\n${riskRows(agentic, rules)}`,
    `## OWASP MCP Top 10\n\n${riskRows(mcp, rules)}`,
  ].join("\n");
}

function ruleRows(rules: readonly Rule[]): string {
  const rows = rules.map(({ id, title, decision, severity, remediation, references }) => {
    return [`\`${id}\``, decision, severity, title, remediation ?? "", references.join(", ")];
  });
  return lines([["rule", "decides", "severity", "what", "what to do", "references"], ...rows]);
}

function riskRows(risks: Readonly<Record<string, ListedRisk>>, rules: readonly Rule[]): string {
  const rows = Object.entries(risks).map(([risk, { title, otherwise }]) => {
    const named = rules.filter(({ references }) => references.includes(risk)).map(({ id }) => `\`${id}\``);
    return [risk, title, named.length === 0 ? "no rule" : named.join(", "), otherwise];
  });
  return lines([["risk", "title", "rules", "beside rules"], ...rows]);
}

function lines([head = [], ...rows]: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return `${[line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n")}\n`;
}
