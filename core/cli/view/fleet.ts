import { escapeHidden } from "../../action/visible-text.ts";
import type { BackupView } from "../../backup/backups.ts";
import type { DeadLetterView } from "../../notify/dead-letter.ts";
import type { ProviderView } from "../../provider/view.ts";
import type { UpstreamView } from "../../upstream/fleet.ts";
import { answerView, listView, tableView, type View } from "../admin-view.ts";

export const upstreamTable: View = tableView<UpstreamView>(
  [
    { title: "upstream", of: ({ name }) => name },
    { title: "state", of: ({ state }) => state },
    { title: "transport", of: ({ transport }) => transport },
    { title: "connections", isNumber: true, of: ({ connections }) => connections },
    { title: "failures", isNumber: true, of: ({ failures }) => failures },
    { title: "why", of: ({ reason = "" }) => reason },
  ],
  ({ name, hidden, contradictions }) => [
    ...hidden.map(({ tool, role, rule, reason }) => {
      const by = rule === null ? reason : `${rule}: ${reason}`;
      return `${escapeHidden(`${name}/${tool}`)} is hidden from the role ${role}, by ${escapeHidden(by)}`;
    }),
    ...contradictions.map(({ tool, stated, annotated }) => {
      return `${escapeHidden(`${name}/${tool}`)} is \`${stated}\`, as configured; its annotations say \`${annotated}\``;
    }),
  ],
);

export const providerTable: View = tableView<ProviderView>([
  { title: "provider", of: ({ name }) => name },
  { title: "state", of: providerState },
  { title: "type", of: ({ type }) => type },
  { title: "in flight", isNumber: true, of: (provider) => provider.requests_in_flight },
  { title: "failures", isNumber: true, of: ({ failures }) => failures },
  { title: "models", of: ({ models }) => models.join(" ") },
  { title: "why", of: ({ last_fault: fault }) => fault ?? "" },
]);

function providerState({ enabled, breaker, rests_for_ms: restMs }: ProviderView): string {
  if (!enabled) return "disabled";
  if (breaker === "closed") return "up";
  return breaker === "half_open" ? "probing" : `paused for ${Math.ceil(restMs / 1_000)} s`;
}

export const deadLetterList: View = listView<DeadLetterView>([
  { title: "message", of: ({ id }) => id, isWhole: true },
  { title: "given up", of: ({ given_up_at: at }) => at, isWhole: true },
  { title: "webhook", of: ({ webhook }) => webhook },
  { title: "event", of: ({ type }) => type },
  { title: "why", of: ({ reason }) => reason },
  { title: "attempts", isNumber: true, of: ({ attempts }) => attempts },
  { title: "last answer", of: ({ status }) => (status === null ? "none" : `status ${status}`) },
]);

export const redelivery: View = answerView((_, { values }) => ({ notes: [`queued ${values.id} for redelivery`] }));

export const backupList: View = listView<BackupView>([
  { title: "backup", of: ({ name }) => name, isWhole: true },
  { title: "state", of: ({ state }) => state },
  { title: "made", of: ({ made_at: at }) => at, isWhole: true },
  { title: "bytes", isNumber: true, of: ({ bytes }) => bytes },
]);
