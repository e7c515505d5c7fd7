import { escapeHidden } from "../../action/visible-text.ts";
import type { ShownField } from "../bundle/build.ts";
import type { ReportedAction, SessionReport } from "./model.ts";
import { describeAction, describeField, describePolicy, describeSummary } from "./wording.ts";

/** The report as Markdown. Nothing from the records can begin a heading, a link or a tag. */
export function renderMarkdown(report: SessionReport): string {
  const { checkpoint, session, label, tenant, created, chain } = report;
  const lines = [
    `# Session ${escapeMarkdown(label ?? session)}`,
    "",
    describeSummary(report),
    "",
    `| | |`,
    `|---|---|`,
    row("Tenant", tenant),
    row("Session", session),
    row("Chain", chain),
    row("Evidence up to", `record ${checkpoint.size - 1}, ${checkpoint.time}, signed by key ${checkpoint.key_id}`),
    row("Digest of the last record", checkpoint.head),
    row("Written", created),
    "",
    "## Actions",
    "",
    ...report.actions.flatMap(renderAction),
    "## Policies that took part",
    "",
    ...report.extensions.map((each) => `- ${escapeMarkdown(describePolicy(each))}, \`${escapeMarkdown(each.digest)}\``),
    "",
    "## What else happened",
    "",
    "| Record | Time | What | Detail |",
    "|---|---|---|---|",
    ...report.events.map(
      ({ seq, time, kind, detail }) => `| ${seq} | ${time} | ${kind} | ${escapeMarkdown(JSON.stringify(detail))} |`,
    ),
    "",
  ];
  return lines.join("\n");
}

function renderAction(action: ReportedAction, at: number): string[] {
  const { does, decision, approval, outcome, shadow } = describeAction(action);
  return [
    `### ${at + 1}. ${escapeMarkdown(action.tool)} on ${escapeMarkdown(action.target)}`,
    "",
    `- ${action.time}, asked by ${escapeMarkdown(action.key_id)} (${escapeMarkdown(action.role)}) through ${escapeMarkdown(action.client)}; a \`${action.capability}\``,
    ...renderFields("Asked", action.arguments),
    ...(does === null ? [] : [`- ${escapeMarkdown(does)}`]),
    ...(decision === null ? [] : [`- **${escapeMarkdown(decision)}** (risk ${action.judged?.risk})`]),
    ...(approval.length === 0 ? [] : ["- Approval", ...approval.map((line) => `  - ${escapeMarkdown(line)}`)]),
    `- **${escapeMarkdown(outcome)}**`,
    ...shadow.map((line) => `- ${escapeMarkdown(line)}`),
    ...renderFields("Answered", action.outcome?.fields ?? []),
    `- Records ${[action.seq, ...(action.outcome === null ? [] : [action.outcome.seq])].join(", ")}`,
    "",
  ];
}

function renderFields(title: string, fields: readonly ShownField[]): string[] {
  if (fields.length === 0) return [];
  return [`- ${title}`, ...fields.map((field) => `  - ${describeField(field).map(escapeMarkdown).join(": ")}`)];
}

function row(name: string, value: string): string {
  return `| ${name} | ${escapeMarkdown(value)} |`;
}

/** Escapes every character that Markdown gives a meaning. */
function escapeMarkdown(text: string): string {
  return escapeHidden(text).replace(/[\\`*_{}[\]()#+!|<>~&^$=:@-]/g, "\\$&");
}
