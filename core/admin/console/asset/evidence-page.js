import { may, needs, Refusal, read, readAll, run } from "./api.js";
import {
  assign,
  button,
  card,
  facts,
  faint,
  field,
  fill,
  link,
  list,
  make,
  pill,
  searchBox,
  statusLine,
} from "./element.js";
import { count, counted, dayTime, sessionName, shortId, visible } from "./text.js";
import { WindowList } from "./window-list.js";

const maxSessions = 2_000;

/** The chain of records: its head and checkpoint, its verification against witnesses, and the export of sessions. */
export function openEvidence({ feed, me }) {
  const abort = new AbortController();
  let sessions = [];
  let search = "";
  const places = { head: make("div", ""), checkpoint: make("div", ""), jobs: make("div", "") };
  const rows = new WindowList({
    label: "Recorded sessions",
    empty: "No session fits.",
    render: rowOf,
    keyOf: ({ id }) => id,
  });
  const summary = statusLine();
  const show = () => {
    const items = sessions.filter(({ id, label }) => `${id}\n${label ?? ""}`.toLowerCase().includes(search));
    rows.show(items);
    summary.textContent = `${counted(items.length, "session")}, the one that began last first.`;
  };
  const box = searchBox("label or id", (text) => {
    search = text;
    show();
  });
  const showHead = () => {
    if (feed.overview === null) return;
    const { writable, seq, state } = feed.overview.evidence;
    fill(
      places.head,
      facts([
        ["records", make("span", "number", count(seq + 1))],
        ["chain", pill(state === "ready" ? "allow" : "block", visible(state))],
        ["disk", pill(writable ? "allow" : "block", writable ? "takes records" : "takes none")],
      ]),
    );
  };
  const load = async (place, ask, render) => {
    try {
      fill(place, render(await ask()));
    } catch (error) {
      if (abort.signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      fill(place, faint(visible(error.message)));
    }
  };
  showHead();
  load(places.checkpoint, () => read("/admin/v1/evidence/checkpoint", {}, abort.signal), checkpointOf);
  load(places.jobs, () => read("/admin/v1/evidence/jobs", {}, abort.signal), jobsOf);
  load(
    summary,
    () => readAll("/admin/v1/evidence/sessions", {}, maxSessions, abort.signal),
    ({ items }) => {
      sessions = items;
      show();
      return summary.textContent;
    },
  );
  const element = make(
    "div",
    "grid",
    card("Chain", places.head, verifyOf(me, abort.signal)),
    card("Checkpoint", places.checkpoint),
    make("div", "wide", card("Export a session", make("div", "filters", field("Search", box)), summary, rows.element)),
    card("Prunes and erasures", places.jobs),
  );
  const end = feed.subscribe(({ overview }) => {
    if (overview) showHead();
  });
  const close = () => {
    abort.abort();
    end();
    rows.close();
  };
  return { element, close };
}

function verifyOf({ role }, signal) {
  if (!may(role, "evidence.verify")) return faint(needs(role, "Verifying"));
  const result = assign(make("div", "verification"), { role: "status", tabindex: "-1" });
  const verify = button("Verify the chain and ask the witnesses", async () => {
    result.focus();
    verify.disabled = true;
    fill(result, faint("Reading every record…"));
    try {
      fill(result, verificationOf(await run("/admin/v1/evidence/verify")));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (!signal.aborted) fill(result, make("p", "notice", visible(error.message)));
    } finally {
      verify.disabled = false;
    }
  });
  return [make("div", "buttons", verify), result];
}

const witnessKinds = { consistent: "allow", behind: "block", forked: "block" };

function verificationOf({ ok, records, head, firstBad, refused, firstKept, witnesses = [] }) {
  const heard = witnesses.map(({ witness, verdict, size }) =>
    make(
      "li",
      "",
      `${visible(witness)} `,
      pill(witnessKinds[verdict] ?? "review", verdict.replaceAll("_", " ")),
      size !== undefined && faint(`${count(size)} records`),
    ),
  );
  return [
    make("p", "", pill(ok ? "allow" : "block", ok ? "verified" : "not sound"), ` ${counted(records, "record")}`),
    facts([
      ["head", head && `${head.seq}: ${shortId(head.hash)}`],
      ["first kept", firstKept === undefined ? null : String(firstKept)],
      ["first fault", firstBad && `record ${firstBad.seq}: ${visible(firstBad.reason)}, ${visible(firstBad.detail)}`],
      ["refused", refused && visible(refused)],
    ]),
    list(heard, "No witness is configured: nobody else has seen this chain."),
  ];
}

function checkpointOf({ note, keys }) {
  const names = keys.map(({ key_id: key, from_size: from, to_size: to }) =>
    make(
      "li",
      "",
      make("code", "", visible(key)),
      faint(`from ${count(from)} records ${to === null ? "on" : `to ${count(to)}`}`),
    ),
  );
  const lines = note.split("\n").map(visible).join("\n");
  return [make("pre", "json", lines), make("h3", "", "Keys that sign it"), list(names, "None.")];
}

function jobsOf({ items }) {
  const kinds = { complete: "allow", failed: "block" };
  const jobs = items.map(({ kind, state, begun_at: begun, verified, deleted, fault }) =>
    make(
      "li",
      "",
      `${kind} `,
      pill(kinds[state] ?? "review", state),
      faint(
        `${dayTime(begun)} · ${count(verified)} verified, ${count(deleted)} deleted`,
        fault && ` · ${visible(fault)}`,
      ),
    ),
  );
  return list(jobs, "None since the gateway started.");
}

function rowOf({ id, label, records, allow, review, block, last_at: last }) {
  const path = `/admin/v1/evidence/sessions/${encodeURIComponent(id)}`;
  const name = sessionName(id, label);
  const bundle = assign(link(`${path}/export`, "", "Export"), { download: "", "aria-label": `Export ${name}` });
  const report = assign(link(`${path}/report?format=html`, "", "Report"), {
    target: "_blank",
    rel: "noopener",
    "aria-label": `Report of ${name}`,
  });
  return make(
    "div",
    "row-link row-with-links",
    make("span", "row-main", link(`#/sessions/${id}`, "plain", name)),
    make(
      "span",
      "row-more",
      `${counted(records, "record")} · ${count(allow)} allowed, ${count(review)} held, ${count(block)} blocked · ${dayTime(last)}`,
    ),
    make("span", "row-links", bundle, report),
  );
}
