import { hash } from "node:crypto";
import { escapeHidden } from "../../action/visible-text.ts";
import type { ShownField } from "../bundle/build.ts";
import type { ReportedAction, SessionReport } from "./model.ts";
import { describeAction, describeField, describePolicy, describeSummary } from "./wording.ts";

const style = `
:root { color-scheme: light dark; --line: color-mix(in srgb, CanvasText 18%, Canvas); --soft: color-mix(in srgb, CanvasText 62%, Canvas);
  --allow: #1a7f4b; --review: #b26a00; --block: #c4314b }
@media (prefers-color-scheme: dark) { :root { --allow: #4cc38a; --review: #f0b45b; --block: #ff7a8f } }
* { box-sizing: border-box }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 56rem; margin: 3rem auto; padding: 0 1.25rem; background: Canvas; color: CanvasText }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; overflow-wrap: anywhere }
h2 { font-size: 1.15rem; margin: 2.6rem 0 .8rem }
h3 { font-size: 1.02rem; margin: 0; overflow-wrap: anywhere }
.soft, dt, th { color: var(--soft) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; margin: 1rem 0 }
dd { margin: 0; overflow-wrap: anywhere }
code { font: .875em ui-monospace, monospace; overflow-wrap: anywhere; white-space: pre-wrap }
article { border: 1px solid var(--line); border-left: 4px solid var(--soft); border-radius: 8px; padding: .9rem 1.1rem; margin: 0 0 .9rem }
article.allow { border-left-color: var(--allow) } article.review { border-left-color: var(--review) } article.block { border-left-color: var(--block) }
article p, article ul { margin: .35rem 0; overflow-wrap: anywhere }
article.allow .verdict { color: var(--allow) } article.review .verdict { color: var(--review) } article.block .verdict { color: var(--block) }
.verdict { font-weight: 600 }
table { border-collapse: collapse; width: 100%; font-size: .9rem } th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line) }
th { font-weight: 500 }
@media print { body { margin: 0; max-width: none } article { break-inside: avoid } }
`;

/** The Content-Security-Policy of a report: its own style, and nothing else. */
export const reportPolicy: string = `default-src 'none'; style-src 'sha256-${hash("sha256", style, "base64")}'; base-uri 'none'; form-action 'none'`;

/** The report as one HTML page that loads nothing and runs nothing. */
export function renderHtml(report: SessionReport): string {
  const { actions, checkpoint, extensions, events, session, label, tenant, created, chain } = report;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escapeHtml(reportPolicy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Evidence of session ${escapeHtml(label ?? session)}</title>
<style>${style}</style>
</head>
<body>
<h1>Session ${escapeHtml(label ?? session)}</h1>
<p>${escapeHtml(describeSummary(report))}</p>
<dl>
${entry("Tenant", tenant)}
${entry("Session", session)}
${entry("Chain", chain)}
${entry("Evidence up to", `record ${checkpoint.size - 1}, ${checkpoint.time}, signed by key ${checkpoint.key_id}`)}
${entry("Last record", checkpoint.head)}
${entry("Written", created)}
</dl>
<h2>Actions</h2>
${actions.map(renderAction).join("\n")}
<h2>Policies that took part</h2>
<dl>
${extensions.map((each) => entry(describePolicy(each), each.digest)).join("\n")}
</dl>
<h2>What else happened</h2>
<table>
<thead><tr><th>Record</th><th>Time</th><th>What</th><th>Detail</th></tr></thead>
<tbody>
${events.map(({ seq, time, kind, detail }) => `<tr><td>${seq}</td><td>${escapeHtml(time)}</td><td>${escapeHtml(kind)}</td><td><code>${escapeHtml(JSON.stringify(detail))}</code></td></tr>`).join("\n")}
</tbody>
</table>
</body>
</html>
`;
}

function renderAction(action: ReportedAction, at: number): string {
  const { judged, outcome, time, key_id: keyId, role, client, capability } = action;
  const { does, decision, approval, outcome: ended, shadow } = describeAction(action);
  const seqs = [action.seq, ...(outcome === null ? [] : [outcome.seq])].join(", ");
  return [
    `<article${judged === null ? "" : ` class="${escapeHtml(judged.decision)}"`}>`,
    `<h3>${at + 1}. ${escapeHtml(action.tool)} <span class="soft">on</span> ${escapeHtml(action.target)}</h3>`,
    `<p class="soft">${escapeHtml(time)} · ${escapeHtml(keyId)} (${escapeHtml(role)}) through ${escapeHtml(client)} · ${escapeHtml(capability)} · records ${seqs}</p>`,
    renderFields(action.arguments),
    ...(does === null ? [] : [`<p>${escapeHtml(does)}</p>`]),
    ...(decision === null ? [] : [`<p class="verdict">${escapeHtml(decision)}</p>`]),
    ...(approval.length === 0 ? [] : [`<ul>${approval.map((line) => `<li>${escapeHtml(line)}</li>`).join("")}</ul>`]),
    `<p>${escapeHtml(ended)}</p>`,
    ...shadow.map((line) => `<p class="soft">${escapeHtml(line)}</p>`),
    renderFields(outcome?.fields ?? []),
    "</article>",
  ]
    .filter((line) => line !== "")
    .join("\n");
}

function renderFields(fields: readonly ShownField[]): string {
  if (fields.length === 0) return "";
  const entries = fields.map((field) => {
    const [name, value] = describeField(field).map(escapeHtml);
    return `<dt>${name}</dt><dd>${"value" in field ? `<code>${value}</code>` : value}</dd>`;
  });
  return `<dl>${entries.join("")}</dl>`;
}

function entry(name: string, value: string): string {
  return `<dt>${escapeHtml(name)}</dt><dd><code>${escapeHtml(value)}</code></dd>`;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escapeHtml(text: string): string {
  return escapeHidden(text).replace(/[&<>"']/g, (sign) => entities[sign] as string);
}
