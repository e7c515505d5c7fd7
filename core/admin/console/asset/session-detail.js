import { change, may, needs, Refusal, read, readAll } from "./api.js";
import { Chart } from "./chart.js";
import { assign, card, facts, faint, fill, link, list, make, meter, pill } from "./element.js";
import { reasonForm } from "./reason-form.js";
import { clockTime, count, counted, dayTime, decisionWord, named, rulesText, sessionName, visible } from "./text.js";
import { WindowList } from "./window-list.js";

const maxRecords = 5_000;

/** One session: its state, its records with their risk, what tainted it, and its stop and release. */
export function openSession({ me, feed }, id, onChange) {
  const abort = new AbortController();
  const path = `/admin/v1/sessions/${encodeURIComponent(id)}`;
  const head = make("div", "part", faint("Reading…"));
  let shownState = null;
  const story = make("div", "part");
  const control = make("div", "part");
  const element = make("article", "session", head, control, story);
  const risk = new Chart("Risk of its actions", [{ label: "risk", color: "review" }], {
    unit: (value) => String(value),
    least: 100,
    bars: true,
    sum: ([times, values]) => `${counted(times.length, "action")}, at most ${Math.max(0, ...values)} of 100.`,
  });
  const rows = new WindowList({
    label: "Timeline",
    empty: "Nothing is on record.",
    render: rowOf,
    keyOf: ({ key }) => key,
  });

  const load = async () => {
    const evidence = `/admin/v1/evidence/sessions/${encodeURIComponent(id)}`;
    const [state, records] = await Promise.all([
      read(path, {}, abort.signal),
      readAll(evidence, {}, maxRecords, abort.signal),
    ]);
    const isOther = state.state !== shownState;
    const hadFocus = (isOther ? [head, control] : [head]).some((each) => each.contains(document.activeElement));
    fill(head, headOf(state));
    // A reason that is being written stays, unless there is nothing more to give it for.
    if (isOther) fill(control, controlOf(state));
    shownState = state.state;
    if (hadFocus) assign(head.querySelector("h2"), { tabindex: "-1" }).focus();
    fill(
      story,
      card("Timeline", risk.element, records.rest && faint(`The first ${count(maxRecords)} records.`), rows.element),
    );
    rows.show(timelineOf(state, records.items));
    const decided = records.items.filter(({ kind, evaluation }) => kind === "decision" && evaluation);
    risk.show([decided.map(({ time }) => Date.parse(time) / 1_000), decided.map(({ evaluation }) => evaluation.risk)]);
  };
  const reload = () =>
    load().catch((error) => {
      if (abort.signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      fill(head, make("p", "notice", `This session cannot be shown: ${visible(error.message)}`));
    });
  const apply = async (verb, body) => {
    await change(`${path}/${verb}`, body);
    await Promise.all([reload(), onChange()]);
  };
  const controlOf = ({ state }) => {
    const title = state === "stopped" ? "Release" : "Stop";
    if (!may(me.role, "session.kill")) return card(title, faint(needs(me.role, "Stopping and releasing")));
    return state === "stopped"
      ? card(
          title,
          reasonForm("Release this session", "Why it may go on", (reason) => apply("release", { reason })),
        )
      : card(
          title,
          faint("None of its actions is allowed from then on, until somebody releases it."),
          reasonForm("Stop this session", "Why it is stopped", (note) => apply("kill", { note }), "deny"),
        );
  };
  reload();
  // A stop or a release by somebody else.
  const end = feed.subscribe(({ sessions }) => {
    if (!sessions || shownState === null) return;
    const { killed } = feed.sessions.get(id) ?? {};
    if (killed === undefined || (killed === null) === (shownState !== "stopped")) return;
    shownState = null;
    reload();
  });
  const close = () => {
    abort.abort();
    end();
    risk.close();
    rows.close();
  };
  return { element, close };
}

function headOf({ session, state, principal, risk, actions, reviews, tools, last_at: last, taints, label }) {
  const items = taints.map(({ name, tool, target, at, action }) =>
    make(
      "li",
      "",
      pill("review", visible(name)),
      ` by ${named(tool)} on ${named(target)}`,
      make("p", "faint", `${dayTime(at)} · action `, link(`#/decisions/${action}`, "", action)),
    ),
  );
  return [
    make(
      "header",
      "detail-head",
      make("h2", "", sessionName(session, label)),
      make("p", "", pill(state === "active" ? "allow" : "block", state)),
      make("p", "faint id", session),
    ),
    card(
      "State",
      facts([
        ["risk", [`${risk} of 100 `, meter("risk of the session", risk, 100)]],
        ["actions", `${count(actions)} dispatched, ${count(reviews)} held, ${counted(tools, "tool")}`],
        ["principal", visible(principal)],
        ["last action", dayTime(last)],
      ]),
    ),
    card("Taints", list(items, "Nothing that it read is distrusted.")),
  ];
}

/** Its records with its taints in between, the latest first. */
function timelineOf({ taints }, records) {
  const outcomes = new Map(
    records.filter(({ kind }) => kind === "outcome").map((each) => [each.action.id, each.effect]),
  );
  const entries = [
    ...records
      .filter(({ kind }) => kind !== "outcome")
      .map((record) => ({
        key: `r${record.seq}`,
        time: record.time,
        record,
        effect: outcomes.get(record.action?.id) ?? record.effect,
      })),
    ...taints.map((taint, at) => ({ key: `t${at}`, time: taint.at, taint })),
  ];
  return entries.sort((a, b) => (a.time < b.time ? 1 : -1));
}

function rowOf({ time, record, taint, effect }) {
  if (taint !== undefined) {
    return link(
      `#/decisions/${taint.action}`,
      "row-link",
      make("span", "row-main", pill("review", "tainted"), ` ${visible(taint.name)}`),
      make("span", "row-more", `${clockTime(time)} · by ${named(taint.tool)} on ${named(taint.target)}`),
    );
  }
  const { action, evaluation, kind, seq } = record;
  if (evaluation === undefined || action === undefined) {
    return make(
      "div",
      "row-link",
      make("span", "row-main", visible(kind)),
      make("span", "row-more", `${clockTime(time)} · record ${seq}`),
    );
  }
  return link(
    `#/decisions/${evaluation.id}`,
    "row-link",
    make(
      "span",
      "row-main",
      pill(evaluation.decision, decisionWord(evaluation.decision)),
      ` ${visible(action.capability)} ${named(action.tool)} on ${named(action.target)}`,
    ),
    make(
      "span",
      "row-more",
      `${clockTime(time)} · ${(effect ?? "").replaceAll("_", " ")} · risk ${evaluation.risk} · ${rulesText(evaluation)}`,
    ),
  );
}
