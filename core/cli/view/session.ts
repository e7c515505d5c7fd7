import { showText, visibleText } from "../../action/visible-text.ts";
import type { Kill, KillTarget } from "../../kill/kill.ts";
import type { SessionDetail, SessionView } from "../../session/session-directory.ts";
import { answerView, listView, type View } from "../admin-view.ts";

export const sessionList: View = listView<SessionView>(sessionLine);

export const sessionDetail: View = answerView<SessionDetail>((detail) => ({ text: describeSession(detail) }));

export const resetSession: View = answerView((_, { values }) => ({ notes: [`reset ${values.id}`] }));

export const killList: View = listView<Kill>((kill) => {
  const { reason, by, note, killed_at: at } = kill;
  const cause = by === null ? reason : `${reason} ${by}`;
  return `${targetName(kill)}  ${at}  ${cause}${note === null ? "" : `  ${showText(note)}`}`;
});

/** The id of a session or principal, or the scope itself. */
export function targetName({ scope, subject }: KillTarget): string {
  return subject ?? `the whole ${scope}`;
}

/** `session-v1-…  active  risk 30  actions 12  reviews 1  tools 4  tainted: untrusted  2026-…` */
function sessionLine(view: SessionView): string {
  if (view.state === "damaged") return `${view.session}  damaged`;
  const { session, state, risk, actions, reviews, tools, taints, last_at: last } = view;
  const counts = [`risk ${risk}`, `actions ${actions}`, `reviews ${reviews}`, `tools ${tools}`];
  const tainted = taints.length === 0 ? [] : [`tainted: ${taints.join(", ")}`];
  return [session, state, ...counts, ...tainted, last].join("  ");
}

function describeSession({ taints, history, ...detail }: SessionDetail): string {
  const names = taints.map(({ name }) => name);
  const sources = taints.map(
    ({ name, target, tool, at }) => `taint ${name}  ${at}  from ${visibleText(tool)} on ${visibleText(target)}`,
  );
  const actions = history.map(({ at, decision, capability, tool, target }) => {
    return `action  ${at}  ${decision}  ${capability} ${visibleText(tool)} on ${visibleText(target)}`;
  });
  return [sessionLine({ ...detail, taints: names }), `principal ${detail.principal}`, ...sources, ...actions].join(
    "\n",
  );
}
