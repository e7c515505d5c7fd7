import { Refusal, readAll } from "./api.js";
import { openApproval } from "./approval-detail.js";
import { clock, countDown, faint, field, fill, link, make, pill, searchBox, select, statusLine } from "./element.js";
import { count, counted, dayTime, named, rulesText, visible } from "./text.js";
import { WindowList } from "./window-list.js";

const maxListed = 5_000;

/** What waits for a reviewer, what was approved and not used, and what is over; with one of them beside the list. */
export function openApprovals(context, id) {
  const { feed, onSecond } = context;
  const abort = new AbortController();
  let state = "pending";
  let search = "";
  let others = [];
  const rows = new WindowList({
    label: "Approvals",
    empty: "Nothing waits.",
    render: rowOf,
    keyOf: ({ id: key, endorsed }) => `${key} ${endorsed}`,
  });
  const summary = statusLine();
  const detail = make("div", "detail");
  const filters = make(
    "div",
    "filters",
    field(
      "State",
      select(
        [
          ["pending", "waiting"],
          ["approved", "approved, not used yet"],
          ["over", "over"],
        ],
        (value) => {
          state = value;
          load();
        },
      ),
    ),
    field(
      "Search",
      searchBox("tool, target, rule, id", (text) => {
        search = text;
        show();
      }),
    ),
  );

  const show = () => {
    const items = (state === "pending" ? [...feed.approvals.values()] : others).filter((each) => fits(each, search));
    rows.show(items);
    const word = state === "pending" ? "waiting" : "listed";
    summary.textContent = items.length === 0 ? `None ${word}.` : `${counted(items.length, "approval")} ${word}.`;
  };
  const load = async () => {
    others = [];
    rows.renew();
    show();
    if (state === "pending") return;
    try {
      const path = state === "over" ? "/admin/v1/approvals/history" : "/admin/v1/approvals";
      const query = state === "over" ? {} : { state };
      const { items } = await readAll(path, query, maxListed, abort.signal);
      others = items.map(flatten);
      show();
    } catch (error) {
      if (error instanceof Refusal) summary.textContent = visible(error.message);
    }
  };
  show();

  const aside = make("div", "aside", filters, summary, rows.element);
  const element = make("div", "split", aside, detail);
  let opened = null;
  const openDetail = (next) => {
    opened?.close();
    opened = next === "" ? null : openApproval(context, next);
    element.classList.toggle("has-detail", opened !== null);
    rows.mark();
    if (opened === null) fill(detail, faint("Choose one to see its arguments, whole, and what came before it."));
    else fill(detail, link("#/approvals", "back", "All approvals"), opened.element);
  };
  openDetail(id);

  const ends = [
    feed.subscribe((change) => {
      if (change.approvals && state === "pending") show();
    }),
    onSecond(() => countDown(rows.element)),
  ];
  const close = () => {
    abort.abort();
    for (const end of ends) end();
    opened?.close();
    rows.close();
  };
  return { element, close, select: openDetail };
}

function rowOf({
  id,
  tool,
  target,
  capability,
  risk,
  expires_at: until,
  state = "pending",
  required,
  endorsed,
  ...rest
}) {
  const time = state === "pending" || state === "approved" ? [clock(until), " left"] : [dayTime(rest.requested_at)];
  const quorum = required > 1 ? ` · ${endorsed} of ${required} approved` : "";
  return link(
    `#/approvals/${id}`,
    "row-link",
    make(
      "span",
      "row-main",
      pill(state === "pending" ? "review" : pillOf(state), stateWord(state, capability)),
      ` ${named(tool)} on ${named(target)}`,
    ),
    make("span", "row-more", time, ` · risk ${risk}${quorum} · ${rulesText(rest)}`),
  );
}

const stateWord = (state, capability) => visible(state === "pending" ? capability : state);
const pillOf = (state) => ({ approved: "allow", consumed: "allow", denied: "block" })[state] ?? "quiet";

function flatten({ id, state, action, evaluation, requested_at, expires_at, required, endorsements }) {
  const { tool, target, capability } = action;
  const { risk, rules } = evaluation;
  return {
    id,
    state,
    tool,
    target,
    capability,
    risk,
    rules,
    requested_at,
    expires_at,
    required,
    endorsed: endorsements.length,
  };
}

function fits({ id, tool, target, capability, rules }, search) {
  if (search === "") return true;
  return [id, tool, target, capability, ...rules].some((each) => each.toLowerCase().includes(search));
}

/** The number beside the name of the page. */
export const waitingBadge = ({ approvals }) => (approvals.size > 0 ? count(approvals.size) : "");
