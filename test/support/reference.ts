import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { errorTable } from "../../core/action/error.ts";
import { buildDocument } from "../../core/admin/api/document.ts";
import { identity } from "../../core/compose/identity.ts";
import { configReference, trustJsonSchema, trustReference } from "../../core/config/reference.ts";
import { engineEditorSchemas } from "../../core/engine/manifest.ts";
import { reasons } from "../../core/evidence/record/reason.ts";
import { mcpMethods } from "../../core/gateway/mcp/method.ts";
import { resourceRoutes } from "../../core/gateway/protected-resource.ts";
import { Metrics } from "../../core/observe/metrics.ts";
import { editorSchemas } from "../../core/policy/schema.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { detectionReference } from "./detection/table.ts";
import { routes } from "./route-table.ts";
import { ruleReference } from "./rule-table.ts";

const notice = "<!-- Generated from the code by `npm run reference`; a test compares. -->\n";

/** The generated reference tables: path from the repository root, and the text it must hold. */
export async function referenceFiles(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ["core/config/REFERENCE.md", `${configReference().replace("\n\n", `\n\n${notice}\n`)}\n${trustReference()}`],
    ["core/action/REFERENCE.md", errorReference()],
    ["core/http/REFERENCE.md", routeReference()],
    ["core/admin/api/openapi.json", `${JSON.stringify(buildDocument(identity.version), null, 2)}\n`],
    ["core/observe/REFERENCE.md", await metricReference()],
    ["plugins/DETECTION.md", await detectionReference()],
    ["policy-packs/RULES.md", await ruleReference(notice)],
    ["sdk/evidence/REASONS.md", reasonReference()],
    ["core/fact/effect/table.json", `${JSON.stringify(effectFiles())}\n`],
    ["core/policy/schema/trust.schema.json", jsonText(trustJsonSchema())],
    ...Array.from(engineEditorSchemas(), ([name, schema]): [string, string] => [
      `core/engine/schema/${name}`,
      jsonText(schema),
    ]),
    ...Array.from(editorSchemas(), ([name, schema]): [string, string] => [
      `core/policy/schema/${name}`,
      jsonText(schema),
    ]),
  ]);
}

function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The effects of programs, as people write them. */
function effectFiles(): object {
  const read = (name: string): unknown => {
    const text = readFileSync(join(repositoryRoot, "core", "fact", "effect", `${name}.yaml`), "utf8");
    return parse(text, { strict: true, uniqueKeys: true, maxAliasCount: 0 });
  };
  return { program: read("program"), wrapper: read("wrapper"), environment: read("environment") };
}

function errorReference(): string {
  const rows = Object.entries(errorTable).map(([code, row]) => [
    `\`${code}\``,
    row.status,
    row.jsonRpc,
    row.expose ? "yes" : "no",
    row.text,
  ]);
  return `# Error codes\n\n${notice}\n${table(["code", "HTTP", "JSON-RPC", "detail shown", "text"], rows)}`;
}

function reasonReference(): string {
  const rows = Object.entries(reasons).map(([reason, { grade, text }]) => [`\`${reason}\``, grade, text]);
  return `# What can be wrong with evidence\n\n${notice}\nBoth verifiers give these reasons and no others.\n\n${table(["reason", "verdict", "means"], rows)}`;
}

function routeReference(): string {
  const resource = Object.values(resourceRoutes).map((route) => ({ port: "gateway", ...route }));
  const http = [...Object.values(routes), ...resource].map(({ port, method, path, access }) => [
    port,
    method,
    `\`${path}\``,
    access,
  ]);
  const mcp = Object.entries(mcpMethods).map(([name, row]) => [
    `\`${name}\``,
    row.eras.join(", "),
    row.routing,
    row.capability ?? "the tool's",
    Object.keys(row.params).join(", "),
  ]);
  return (
    `# Routes\n\n${notice}\n${table(["port", "method", "path", "access"], http)}\n` +
    `# MCP methods\n\nBeyond the handshake (\`initialize\`, \`ping\`, \`server/discover\`), which the gateway answers itself.\n\n` +
    table(["method", "eras", "goes to", "capability", "params kept"], mcp)
  );
}

async function metricReference(): Promise<string> {
  const text = await new Metrics("").text();
  const rows = [...text.matchAll(/^# HELP (gateway_\S+) (.*)$/gm)].map(([, name, help]) => {
    const type = new RegExp(`^# TYPE ${name} (\\w+)$`, "m").exec(text)?.[1] ?? "";
    return [`\`${name}\``, type, help ?? ""];
  });
  return `# Metrics\n\n${notice}\nBeside Node's own process metrics.\n\n${table(["name", "type", "meaning"], rows)}`;
}

/** A Markdown table with columns of equal width, as an editor would lay it out. */
function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, column) => Math.max(3, ...cells.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |\n`;
  const [top, ...rest] = cells.map(line);
  return `${top}${line(widths.map((width) => "-".repeat(width)))}${rest.join("")}`;
}
