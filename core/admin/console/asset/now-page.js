import { Chart } from "./chart.js";
import { card, clock, countDown, faint, link, list, make, meter, pill, update } from "./element.js";
import {
  clockTime,
  count,
  counted,
  decisionWord,
  effectOf,
  milliseconds,
  named,
  rulesText,
  sessionName,
  visible,
} from "./text.js";
import { budgetList } from "./usage-page.js";

const shownSessions = 8;
const shownDecisions = 6;

/** The state of the gateway at a glance. */
export function openNow({ feed, onSecond }) {
  const tiles = make("div", "tiles");
  const rate = new Chart(
    "Decisions a second",
    [
      { label: "blocked", color: "block", isFilled: true },
      { label: "held", color: "review", isFilled: true },
      { label: "allowed", color: "allow", isFilled: true },
    ],
    { unit: (value) => count(value), stacked: true, sum: sumOfRates },
  );
  const latency = new Chart(
    "Policy time",
    [
      { label: "99th percentile", color: "accent" },
      { label: "median", color: "quiet" },
    ],
    { unit: (value) => `${value} ms`, least: 0.5, sum: sumOfTimes },
  );
  const places = Object.fromEntries(
    ["waiting", "sessions", "latest", "budgets", "peers", "evidence", "shadow"].map((name) => [name, make("div", "")]),
  );
  const element = make(
    "div",
    "grid",
    tiles,
    make("div", "card wide charts", rate.element, latency.element),
    card("Waiting for a reviewer", places.waiting),
    card("Risk by session", places.sessions),
    card("Latest decisions", places.latest),
    card("Upstreams and providers", places.peers),
    card("Budgets", places.budgets),
    card("Evidence", places.evidence),
    card("What shadow mode would have done", places.shadow),
  );

  const showRates = () => {
    update(tiles, tilesOf(feed));
    const points = feed.samples;
    if (points.length < 2) return;
    const column = (value) => points.map(value);
    const seconds = column(({ time }) => time / 1_000);
    rate.show([
      seconds,
      column(({ allow, review, block }) => allow + review + block),
      column(({ allow, review }) => allow + review),
      column(({ allow }) => allow),
    ]);
    latency.show([seconds, column(({ p99 }) => toMs(p99)), column(({ p50 }) => toMs(p50))]);
  };
  const showAll = () => {
    showRates();
    update(places.waiting, waitingOf(feed));
    update(places.sessions, sessionsOf(feed));
    update(places.latest, latestOf(feed));
    const { overview } = feed;
    if (overview === null) return;
    update(places.peers, peersOf(overview));
    update(places.budgets, budgetList(overview.budgets));
    update(places.evidence, evidenceOf(overview));
    update(places.shadow, shadowOf(overview));
  };
  showAll();
  const ends = [
    feed.subscribe((change) => {
      if (change.overview || change.reloaded) return showAll();
      if (change.samples) showRates();
      if (change.approvals) update(places.waiting, waitingOf(feed));
      if (change.sessions) update(places.sessions, sessionsOf(feed));
      if (change.decisions.length > 0) update(places.latest, latestOf(feed));
    }),
    onSecond(() => countDown(places.waiting)),
  ];
  const close = () => {
    for (const end of ends) end();
    rate.close();
    latency.close();
  };
  return { element, close };
}

const toMs = (us) => (us === null ? null : us / 1_000);

function sumOfRates([, total, held, allowed]) {
  const [all, two, one] = [total, held, allowed].map((values) => values.at(-1) ?? 0);
  return `Now ${count(one)} allowed, ${count(two - one)} held, ${count(all - two)} blocked a second.`;
}

function sumOfTimes([, p99, p50]) {
  const [slow, usual] = [p99, p50].map((values) => values.at(-1));
  return slow === null || slow === undefined
    ? "No decision yet."
    : `Now ${usual} ms at the median, ${slow} ms at the 99th percentile.`;
}

function tile(id, value, caption, kind = "") {
  const number = make("span", `number ${kind}`, value);
  number.id = id;
  return make("div", "tile", number, make("span", "", caption));
}

function tilesOf({ rates, samples }) {
  const { allow, review, block, policy_p50_us: p50, policy_p99_us: p99 } = rates ?? {};
  const now = samples.at(-1);
  const perSecond = now === undefined ? "–" : count(Math.round(now.allow + now.review + now.block));
  return [
    tile("allow", rates ? count(allow) : "–", "allowed since the start", "allow"),
    tile("review", rates ? count(review) : "–", "held for a person", "review"),
    tile("block", rates ? count(block) : "–", "blocked", "block"),
    tile("rate", perSecond, "decisions a second"),
    tile("p50", milliseconds(p50), "policy time, median"),
    tile("p99", milliseconds(p99), "policy time, 99th percentile"),
  ];
}

function waitingOf({ approvals }) {
  const first = [...approvals.values()].sort((a, b) => (a.expires_at < b.expires_at ? -1 : 1)).slice(0, 4);
  const items = first.map(({ id, tool, target, capability, risk, expires_at: until }) =>
    make(
      "li",
      "",
      link(`#/approvals/${id}`, "plain", pill("review", visible(capability)), ` ${named(tool)} on ${named(target)}`),
      faint(`risk ${risk} · `, clock(until), " left"),
    ),
  );
  const more = approvals.size > first.length ? [link("#/approvals", "", `All ${count(approvals.size)} that wait`)] : [];
  return [list(items, "Nothing waits."), more];
}

function sessionsOf({ sessions }) {
  const worst = [...sessions.values()].sort((a, b) => b.risk - a.risk).slice(0, shownSessions);
  const items = worst.map(({ session, label, risk, taints = [], killed }) => {
    const name = sessionName(session, label);
    const state = killed ? [" ", pill("block", `stopped: ${visible(killed)}`)] : [];
    const words = taints.length > 0 ? [faint(`tainted: ${taints.map(visible).join(", ")}`)] : [];
    // A stop of a principal or of the tenant comes over the same channel.
    const title = session.startsWith("session-v1-") ? link(`#/sessions/${session}`, "plain", name) : name;
    return make(
      "li",
      "",
      title,
      make("span", "faint", ` risk ${risk}`),
      state,
      meter(`risk of ${name}`, risk, 100),
      words,
    );
  });
  return list(items, "No session stands out.");
}

function latestOf({ decisions }) {
  const items = decisions
    .slice(-shownDecisions)
    .toReversed()
    .map(({ time, data }) =>
      make(
        "li",
        "",
        link(
          `#/decisions/${data.id}`,
          "plain",
          pill(data.decision, decisionWord(data.decision)),
          ` ${visible(data.tool)}`,
        ),
        faint(`${clockTime(time)} · ${effectOf(data.effect)} · ${rulesText(data)}`),
      ),
    );
  return [list(items, "No decision yet."), decisions.length > 0 && link("#/decisions", "", "All decisions")];
}

const peerKinds = new Map([
  ["up", "allow"],
  ["idle", "quiet"],
  ["starting", "quiet"],
  ["closed", "allow"],
  ["half_open", "review"],
]);
/** A breaker that is closed lets requests through, which few would guess. */
const breakerWords = new Map([
  ["closed", "serves"],
  ["half_open", "tries again"],
  ["open", "rests after failures"],
]);

function peersOf({ upstreams, providers }) {
  const rows = [
    ...upstreams.map(({ name, state, status, reason }) => [
      name,
      "upstream",
      state ?? status ?? "",
      state ?? status ?? "",
      reason,
    ]),
    ...providers.map(({ name, breaker, last_fault: fault }) => [
      name,
      "provider",
      breaker,
      breakerWords.get(breaker) ?? breaker,
      fault,
    ]),
  ];
  const items = rows.map(([name, kind, state, word, why]) =>
    make(
      "li",
      "",
      `${visible(name)} `,
      pill(peerKinds.get(state) ?? "block", visible(word)),
      faint(why ? `${kind} · ${visible(why)}` : kind),
    ),
  );
  return list(items, "None is configured.");
}

function evidenceOf({ evidence: { writable, seq, state } }) {
  const rows = [
    make("li", "", "Records ", make("span", "strong", count(seq + 1))),
    make("li", "", "Chain ", pill(state === "ready" ? "allow" : "block", visible(state))),
    make("li", "", "Disk ", pill(writable ? "allow" : "block", writable ? "takes records" : "takes none")),
  ];
  return [list(rows, ""), link("#/evidence", "", "Verify and export")];
}

function shadowOf({ shadow_decisions: decisions }) {
  const words = { review: "would have held", block: "would have blocked" };
  const items = decisions
    .slice(0, shownSessions)
    .map(({ rule, decision, count: times, last_time: last }) =>
      make(
        "li",
        "",
        `${visible(rule)} `,
        pill(decision, `${words[decision]} ${count(times)}`),
        faint(`last at ${clockTime(last)}`),
      ),
    );
  const more =
    decisions.length > items.length ? [link("#/policies", "", `All ${counted(decisions.length, "rule")}`)] : [];
  return [list(items, "Nothing yet."), more];
}
