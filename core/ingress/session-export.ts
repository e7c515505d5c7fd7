import type { Context } from "koa";
import { parseRedactions } from "../evidence/bundle/redaction.ts";
import { renderHtml, reportPolicy } from "../evidence/report/html.ts";
import { renderMarkdown } from "../evidence/report/markdown.ts";
import { buildReport } from "../evidence/report/model.ts";
import type { ExportRequest, SessionExport } from "../evidence/session-export.ts";
import type { Principal } from "../kernel/principal.ts";
import { can } from "../kernel/role.ts";
import type { AskedBy } from "./api/asked.ts";

/**
 * Answers the bundle of one session; `?redact=<seq>.<member>.<field>`, repeated, withholds fields. A caller who may not
 * see private fields gets it with all of them withheld.
 */
export async function sendBundle(
  exporter: SessionExport,
  ctx: Context,
  caller: Principal,
  asked: AskedBy<"admin.export">,
): Promise<void> {
  const request = requestOf(asked, caller);
  const bundle = await exporter.bundle(caller.tenant, request);
  ctx.set("content-disposition", `attachment; filename="evidence-${request.session}.jsonl"`);
  ctx.type = "application/jsonl";
  ctx.body = bundle;
}

/** Answers the report of one session as `?format=` `json` (unless told), `md` or `html`. */
export async function sendReport(
  exporter: SessionExport,
  ctx: Context,
  caller: Principal,
  asked: AskedBy<"admin.report">,
): Promise<void> {
  const { format } = asked.query;
  const report = buildReport(await exporter.collect(caller.tenant, "evidence.report", requestOf(asked, caller)));
  if (format === "json") {
    ctx.body = report;
    return;
  }
  ctx.type = format === "md" ? "text/markdown; charset=utf-8" : "text/html; charset=utf-8";
  ctx.set("content-security-policy", `${reportPolicy}; frame-ancestors 'none'`);
  ctx.body = format === "md" ? renderMarkdown(report) : renderHtml(report);
}

function requestOf({ id, query }: AskedBy<"admin.export">, caller: Principal): ExportRequest {
  return {
    session: id,
    by: caller.id,
    disclose: can(caller.role, "evidence.disclose"),
    redact: parseRedactions(query.redact),
  };
}
