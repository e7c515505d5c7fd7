import { showText } from "../../action/visible-text.ts";
import type { ManifestView } from "../../manifest/operation.ts";
import { answerView, listView, type View } from "../admin-view.ts";

export const manifestList: View = listView<ManifestView>([
  { title: "task", of: ({ task }) => task, isWhole: true },
  { title: "of", of: ({ principal, session }) => scopeOf(principal, session) },
  { title: "actions", isNumber: true, of: ({ max_actions: max }) => max },
  { title: "until", of: ({ expires_at: until }) => until, isWhole: true },
]);

export const manifestDetail: View = answerView<ManifestView>((manifest) => ({ text: describeManifest(manifest) }));

export const withdrawnManifest: View = answerView((_, { values }) => {
  return { notes: [`withdrew the manifest of ${values.task}`] };
});

function describeManifest(manifest: ManifestView): string {
  const list = (patterns: readonly string[]): string => patterns.map(showText).join("  ") || "none";
  const rows: readonly (readonly [string, string])[] = [
    ["task", manifest.task],
    ["of", scopeOf(manifest.principal, manifest.session)],
    ["tools", list(manifest.expected_tools)],
    ["resources", list(manifest.expected_resources)],
    ["writes to", list(manifest.write_domains)],
    ["actions", `at most ${manifest.max_actions} of a session`],
    ["until", manifest.expires_at],
    ["mode", manifest.mode ?? "as configured"],
    ["declared", `${manifest.declared_at} by ${manifest.declared_by}`],
    ["digest", manifest.digest],
  ];
  return rows.map(([name, text]) => `${name.padEnd(11)}${text}`).join("\n");
}

function scopeOf(principal: string, session: string | undefined): string {
  return session === undefined ? principal : `${principal} in \`${session}\``;
}
