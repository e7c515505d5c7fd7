import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const style = "text/css; charset=utf-8";
const script = "text/javascript; charset=utf-8";
const charts = "uplot/dist";

/** The files below `/assets/` of the console: the only ones that are served, each from the file that stands here. */
export const consoleAssets = [
  { name: "console.css", type: style, file: "console.css" },
  { name: "theme.css", type: style, file: "theme.css" },
  { name: "uplot.css", type: style, file: `${charts}/uPlot.min.css` },
  { name: "icon.svg", type: "image/svg+xml", file: "icon.svg" },
  { name: "uplot.js", type: script, file: `${charts}/uPlot.iife.min.js` },
  { name: "api.js", type: script, file: "api.js" },
  { name: "approval-detail.js", type: script, file: "approval-detail.js" },
  { name: "approvals-page.js", type: script, file: "approvals-page.js" },
  { name: "chart.js", type: script, file: "chart.js" },
  { name: "console.js", type: script, file: "console.js" },
  { name: "decision-detail.js", type: script, file: "decision-detail.js" },
  { name: "decisions-page.js", type: script, file: "decisions-page.js" },
  { name: "element.js", type: script, file: "element.js" },
  { name: "evidence-page.js", type: script, file: "evidence-page.js" },
  { name: "feed.js", type: script, file: "feed.js" },
  { name: "json-view.js", type: script, file: "json-view.js" },
  { name: "now-page.js", type: script, file: "now-page.js" },
  { name: "owasp.js", type: script, file: "owasp.js" },
  { name: "policies-page.js", type: script, file: "policies-page.js" },
  { name: "reason-form.js", type: script, file: "reason-form.js" },
  { name: "session-detail.js", type: script, file: "session-detail.js" },
  { name: "sessions-page.js", type: script, file: "sessions-page.js" },
  { name: "sign-in.js", type: script, file: "sign-in.js" },
  { name: "text.js", type: script, file: "text.js" },
  { name: "theme.js", type: script, file: "theme.js" },
  { name: "usage-page.js", type: script, file: "usage-page.js" },
  { name: "window-list.js", type: script, file: "window-list.js" },
] as const satisfies readonly { readonly name: string; readonly type: string; readonly file: string }[];

export type AssetName = (typeof consoleAssets)[number]["name"];

const { resolve } = createRequire(import.meta.url);

/** Reads a file of the console: of the charting package, or from beside the sources, which the build does not copy. */
export function readAsset(file: string): Buffer {
  const isPackaged = file.startsWith(`${charts}/`);
  return readFileSync(
    isPackaged
      ? resolve(file)
      : fileURLToPath(new URL(`../../../../core/admin/console/asset/${file}`, import.meta.url)),
  );
}
