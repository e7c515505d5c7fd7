import { openDecision } from "./decision-detail.js";
import { faint, field, fill, link, make, pill, searchBox, select, statusLine } from "./element.js";
import { clockTime, counted, decisionWord, effectOf, named, rulesText, visible } from "./text.js";
import { WindowList } from "./window-list.js";

const idShape = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The latest decisions as they are made, with one of them beside the list. */
export function openDecisions(context, id) {
  const { feed } = context;
  let decision = "";
  let search = "";
  /** Those that fit, the newest first; kept from frame to frame. */
  let fitting = [];
  const rows = new WindowList({
    label: "Decisions",
    empty: "No decision fits.",
    render: rowOf,
    keyOf: ({ data }) => data.id,
  });
  const summary = statusLine();
  const detail = make("div", "detail");
  const fits = ({ data }) =>
    (decision === "" || data.decision === decision) && (search === "" || textOf(data).includes(search));
  const show = (added) => {
    rows.show(fitting, added);
    summary.textContent = `${counted(fitting.length, "decision")} of the latest ${feed.decisions.length}.`;
  };
  const filter = () => {
    fitting = feed.decisions.filter(fits).reverse();
    rows.element.scrollTop = 0;
    show(0);
  };
  const filters = make(
    "div",
    "filters",
    field(
      "Decision",
      select(
        [
          ["", "all"],
          ["allow", "allowed"],
          ["review", "held"],
          ["block", "blocked"],
        ],
        (value) => {
          decision = value;
          filter();
        },
      ),
    ),
    field(
      "Search",
      searchBox("tool, target, rule, session, id", (text) => {
        search = text;
        if (idShape.test(text)) location.hash = `#/decisions/${text}`;
        filter();
      }),
    ),
  );
  filter();

  const element = make("div", "split", make("div", "aside", filters, summary, rows.element), detail);
  let opened = null;
  const openDetail = (next) => {
    opened?.close();
    opened = next === "" ? null : openDecision(context, next);
    element.classList.toggle("has-detail", opened !== null);
    rows.mark();
    const hint = "Choose one to see which rules decided. An older one is found by its id, or in its session.";
    if (opened === null) fill(detail, faint(hint));
    else fill(detail, link("#/decisions", "back", "All decisions"), opened.element);
  };
  openDetail(id);

  const end = feed.subscribe((change) => {
    if (change.reloaded) return filter();
    if (change.decisions.length === 0) return;
    const fresh = change.decisions.filter(fits);
    fitting = [...fresh.reverse(), ...fitting];
    // Those that the feed has let go are the oldest.
    const oldest = feed.decisions[0];
    while (fitting.length > 0 && fitting.at(-1).time < oldest.time) fitting.pop();
    if (fitting.length > feed.decisions.length) fitting.length = feed.decisions.length;
    show(fresh.length);
  });
  const close = () => {
    end();
    opened?.close();
    rows.close();
  };
  return { element, close, select: openDetail };
}

function textOf({ id, action, tool, target, principal, session, label, rules, capability }) {
  return [id, action, tool, target, principal, session, label ?? "", capability, ...rules].join("\n").toLowerCase();
}

function rowOf({ time, data }) {
  const who = data.label === null ? data.principal : `${data.principal} · ${data.label}`;
  return link(
    `#/decisions/${data.id}`,
    "row-link",
    make(
      "span",
      "row-main",
      pill(data.decision, decisionWord(data.decision)),
      ` ${named(data.tool)} on ${named(data.target)}`,
    ),
    make(
      "span",
      "row-more",
      `${clockTime(time)} · ${effectOf(data.effect)} · ${visible(who)} · ${rulesText(data)} · risk ${data.risk}`,
    ),
  );
}
