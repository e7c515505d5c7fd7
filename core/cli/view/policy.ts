import type { ActivePolicy } from "../../action/policy.ts";
import type { ShadowLogEntry } from "../../observe/shadow-log.ts";
import { listView, tableView, type View } from "../admin-view.ts";
import type { Column } from "../table.ts";

const columns: readonly Column<ActivePolicy>[] = [
  { title: "kind", of: ({ kind }) => kind },
  { title: "name", of: ({ name }) => name },
  { title: "version", of: ({ version }) => version },
  { title: "mode", of: ({ mode }) => mode },
  { title: "signed by", of: ({ kind, signer }) => signer ?? (kind === "session" ? "built in" : "nobody") },
  { title: "digest", of: ({ digest }) => digest },
];

export const policyTable: View = tableView(columns);

export const pluginTable: View = tableView(columns.slice(1));

const effects = { review: "held", block: "blocked" } as const;

export const shadowList: View = listView<ShadowLogEntry>([
  { title: "rule", of: ({ rule }) => rule },
  { title: "would have", of: ({ decision }) => effects[decision] },
  { title: "times", isNumber: true, of: ({ count }) => count },
  { title: "last", of: ({ last_time: at }) => at, isWhole: true },
  { title: "last decision", of: ({ last_decision: last }) => last, isWhole: true },
]);
