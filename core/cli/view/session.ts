import { escapeHidden, visibleText } from "../../action/visible-text.ts";
import type { Kill, KillTarget } from "../../kill/kill.ts";
import type { Labelled } from "../../session/operation.ts";
import type { SessionDetail, SessionView } from "../../session/session-directory.ts";
import { answerView, listView, type View } from "../admin-view.ts";
import type { Column } from "../table.ts";

type Sound = Exclude<SessionView, { readonly state: "damaged" }>;

/** A column of what a session has unless its state is damaged. */
function ofSound(title: string, of: (view: Sound) => string | number): Column<Labelled<SessionView>> {
  return { title, of: (view) => (view.state === "damaged" ? "" : of(view)), isNumber: true };
}

export const sessionList: View = listView<Labelled<SessionView>>([
  { title: "session", of: ({ session }) => session, isWhole: true },
  { title: "label", of: ({ label }) => label ?? "" },
  { title: "state", of: ({ state }) => state },
  ofSound("risk", ({ risk }) => risk),
  ofSound("actions", ({ actions }) => actions),
  ofSound("reviews", ({ reviews }) => reviews),
  ofSound("tools", ({ tools }) => tools),
  { title: "last action", of: (view) => (view.state === "damaged" ? "" : view.last_at), isWhole: true },
  { title: "taints", of: (view) => (view.state === "damaged" ? "" : view.taints.join(", ")) },
]);

export const sessionDetail: View = answerView<Labelled<SessionDetail>>((detail) => ({ text: describeSession(detail) }));

export const resetSession: View = answerView<{ readonly session: string }>(({ session }) => ({
  notes: [`reset ${session}`],
}));

export const killList: View = listView<Kill>([
  { title: "stopped", of: targetName, isWhole: true },
  { title: "since", of: ({ killed_at: at }) => at, isWhole: true },
  { title: "reason", of: ({ reason }) => reason },
  { title: "by", of: ({ by }) => by ?? "", isWhole: true },
  { title: "note", of: ({ note }) => note ?? "" },
]);

/** The id of a session or principal, or the scope itself. */
export function targetName({ scope, subject }: KillTarget): string {
  return subject ?? `the whole ${scope}`;
}

function describeSession({ taints, history, ...detail }: Labelled<SessionDetail>): string {
  const { session, label, state, principal, risk, actions: count, reviews, tools, last_at: last } = detail;
  const rows: readonly (readonly [string, string | number])[] = [
    ["session", session],
    ["label", label === null ? "none" : escapeHidden(label)],
    ["state", state],
    ["principal", principal],
    ["risk", risk],
    ["actions", count],
    ["reviews", reviews],
    ["tools", tools],
    ["last", last],
  ];
  const sources = taints.map(
    ({ name, target, tool, at }) => `taint ${name}  ${at}  from ${visibleText(tool)} on ${visibleText(target)}`,
  );
  const actions = history.map(({ at, decision, capability, tool, target }) => {
    return `action  ${at}  ${decision}  ${capability} ${visibleText(tool)} on ${visibleText(target)}`;
  });
  return [...rows.map(([name, value]) => `${name.padEnd(11)}${value}`), ...sources, ...actions].join("\n");
}
