import { change, may, Refusal, readAll } from "./api.js";
import { button, card, faint, field, fill, link, make, meter, pill, searchBox, select, statusLine } from "./element.js";
import { reasonForm } from "./reason-form.js";
import { openSession } from "./session-detail.js";
import { clockTime, count, counted, dayTime, sessionName, shortId, visible } from "./text.js";
import { WindowList } from "./window-list.js";

const maxListed = 2_000;

const orders = {
  risk: (a, b) => b.risk - a.risk,
  last: (a, b) => (a.last < b.last ? 1 : -1),
  label: (a, b) => (a.label ?? "\uffff").localeCompare(b.label ?? "\uffff"),
};

/** The sessions of agents by label, what is stopped, and one session beside the list. */
export function openSessions(context, id) {
  const { me } = context;
  const abort = new AbortController();
  let order = "risk";
  let search = "";
  let sessions = [];
  const rows = new WindowList({
    label: "Sessions",
    empty: "No session fits.",
    render: rowOf,
    keyOf: (each) => each.session,
  });
  const summary = statusLine();
  const stops = make("div", "");
  const detail = make("div", "detail");
  const show = () => {
    const items = sessions.filter((each) => fits(each, search)).sort(orders[order]);
    rows.show(items);
    summary.textContent = `${counted(items.length, "session")} at ${clockTime(Date.now())}.`;
  };
  const orderNames = [
    ["risk", "highest risk first"],
    ["last", "latest first"],
    ["label", "by label"],
  ];
  const filters = make(
    "div",
    "filters",
    field(
      "Order",
      select(orderNames, (value) => {
        order = value;
        show();
      }),
    ),
    field(
      "Search",
      searchBox("label, principal, id, taint", (text) => {
        search = text;
        show();
      }),
    ),
  );

  const load = async () => {
    try {
      const [states, recorded, kills] = await Promise.all([
        readAll("/admin/v1/sessions", { sort: "risk" }, maxListed, abort.signal),
        readAll("/admin/v1/evidence/sessions", {}, maxListed, abort.signal),
        readAll("/admin/v1/kills", {}, maxListed, abort.signal),
      ]);
      sessions = merge(states.items, recorded.items);
      rows.renew();
      show();
      if (states.rest || recorded.rest)
        summary.textContent += ` The ${count(maxListed)} of highest risk and the latest.`;
      fill(stops, kills.items.length > 0 && stopsOf(kills.items));
    } catch (error) {
      if (abort.signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      summary.textContent = visible(error.message);
    }
  };
  const stopsOf = (kills) => {
    const items = kills.map((kill) => {
      const { scope, subject, reason, note, killed_at: at } = kill;
      const name =
        scope === "session"
          ? link(`#/sessions/${subject}`, "", shortId(subject))
          : subject === null
            ? ""
            : visible(subject);
      const permission = scope === "gateway" ? "gateway.kill" : "session.kill";
      const body = subject === null ? { scope } : { scope, subject };
      const release = async (text) => {
        await change("/admin/v1/kills/release", { ...body, reason: text });
        await load();
      };
      return make(
        "li",
        "",
        pill("block", `${scope} stopped`),
        " ",
        name,
        faint(`${reason.replaceAll("_", " ")} · ${dayTime(at)}`, note && ` · ${visible(note)}`),
        // A session is released on its own page, beside what it did.
        scope !== "session" &&
          may(me.role, permission) &&
          reasonForm(`Release this ${scope}`, "Why it may go on", release),
      );
    });
    return card("Stopped", make("ul", "list", items));
  };
  load();

  const head = make("div", "line", summary, button("Refresh", load));
  const element = make("div", "split", make("div", "aside", stops, filters, head, rows.element), detail);
  let opened = null;
  const openDetail = (next) => {
    opened?.close();
    opened = next === "" ? null : openSession(context, next, load);
    element.classList.toggle("has-detail", opened !== null);
    rows.mark();
    if (opened === null) fill(detail, faint("Choose one to see what it did, what it read, and to stop it."));
    else fill(detail, link("#/sessions", "back", "All sessions"), opened.element);
  };
  openDetail(id);
  const close = () => {
    abort.abort();
    opened?.close();
    rows.close();
  };
  return { element, close, select: openDetail };
}

/** Sessions with what is known of their state, and of their records. */
function merge(states, recorded) {
  const byId = new Map();
  for (const {
    session,
    label,
    state,
    principal = "",
    risk = 0,
    taints = [],
    last_at: last = "",
    actions = 0,
  } of states) {
    const points = state === "damaged" ? 100 : risk;
    byId.set(session, { session, label, state, principal, risk: points, taints, last, actions });
  }
  for (const { id, label, principal, last_at: last, allow, review, block } of recorded) {
    const known = byId.get(id) ?? {
      session: id,
      state: "active",
      principal,
      risk: 0,
      taints: [],
      last,
      actions: allow,
    };
    byId.set(id, { ...known, label: label ?? known.label, allow, review, block });
  }
  return [...byId.values()];
}

function fits({ session, label, principal, taints }, search) {
  return (
    search === "" || [session, label ?? "", principal, ...taints].some((each) => each.toLowerCase().includes(search))
  );
}

function rowOf({ session, label, state, risk, taints, last, allow, review, block, actions }) {
  const sums =
    allow === undefined
      ? counted(actions, "action")
      : `${count(allow)} allowed, ${count(review)} held, ${count(block)} blocked`;
  const name = sessionName(session, label);
  return link(
    `#/sessions/${session}`,
    "row-link",
    make(
      "span",
      "row-main",
      meter(`risk of ${name}`, risk, 100),
      state !== "active" && [pill("block", state), " "],
      taints.length > 0 && [pill("review", "tainted"), " "],
      name,
    ),
    make("span", "row-more", `risk ${risk} · ${sums}`, last !== "" && ` · ${dayTime(last)}`),
  );
}
