import { access, change, may, read } from "./api.js";
import { openApprovals, waitingBadge } from "./approvals-page.js";
import { openDecisions } from "./decisions-page.js";
import { assign, fill, link, make } from "./element.js";
import { openEvidence } from "./evidence-page.js";
import { Feed } from "./feed.js";
import { openNow } from "./now-page.js";
import { openPolicies } from "./policies-page.js";
import { openSessions } from "./sessions-page.js";
import { readSession, staleNotice, waysIn } from "./sign-in.js";
import { visible } from "./text.js";
import { openTheme } from "./theme.js";
import { openUsage } from "./usage-page.js";

const retryMs = 10_000;
const recheckMs = 60_000;
const gateway = "Agent Governance Gateway";

const pages = new Map([
  ["now", { title: "Now", open: openNow }],
  ["approvals", { title: "Approvals", open: openApprovals, badge: waitingBadge }],
  ["decisions", { title: "Decisions", open: openDecisions }],
  ["sessions", { title: "Sessions", open: openSessions }],
  ["policies", { title: "Policies", open: openPolicies }],
  ["evidence", { title: "Evidence", open: openEvidence }],
  ["usage", { title: "Usage", open: openUsage }],
]);

const at = (id) => document.getElementById(id);

const feed = new Feed();
const seconds = new Set();
let session = null;
let isRefused = false;
let wasEntered = false;
/** The page that is shown: its name and what `open` returned. */
let shown = null;

/** Calls `listener` each second while the page is in sight. Returns the function that ends that. */
function onSecond(listener) {
  seconds.add(listener);
  return () => seconds.delete(listener);
}

setInterval(() => {
  if (!document.hidden) for (const listener of [...seconds]) listener();
}, 1_000);

/** `#/approvals/apr_…` as the name of a page and the id of one thing on it. */
function readRoute() {
  const [name = "", ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return { name: pages.has(name) ? name : "now", id: rest.join("/") };
}

function showPage() {
  if (session === null) return;
  const { name, id } = readRoute();
  const { title, open } = pages.get(name);
  for (const each of at("pages").querySelectorAll("a")) {
    assign(each, { "aria-current": each.hash === `#/${name}` ? "page" : null });
  }
  if (shown?.name === name && shown.select !== undefined) {
    shown.select(id);
    // On a narrow page the list gives way to what was chosen, and back.
    if (document.activeElement?.offsetParent === null) shown.element.querySelector(".detail .back")?.focus();
    return;
  }
  const wasIn = at("page").contains(document.activeElement) || at("pages").contains(document.activeElement);
  shown?.close();
  at("title").textContent = title;
  document.title = `${title} · ${gateway}`;
  shown = { name, ...open({ feed, me: session.principal, onSecond }, id) };
  fill(at("page"), shown.element);
  scrollTo(0, 0);
  if (wasIn) at("main").focus({ preventScroll: true });
}

function showNav() {
  const items = [...pages].map(([name, { title, badge }], index) => {
    const mark = badge === undefined ? [] : [make("span", "badge", badge(feed))];
    return make("li", "", assign(link(`#/${name}`, "", title, mark), { "aria-keyshortcuts": String(index + 1) }));
  });
  fill(at("pages"), make("ul", "", items));
  at("pages").hidden = false;
}

function showStanding() {
  const { status, version } = feed.overview?.service ?? {};
  if (status !== undefined) at("health").textContent = `${status} · ${visible(version)}`;
  at("health").className = `pill ${status === "ok" ? "allow" : "quiet"}`;
  at("live").textContent = feed.isLive ? "live" : "not live";
  at("live").className = `pill ${feed.isLive ? "allow" : "quiet"}`;
  for (const each of at("pages").querySelectorAll(".badge")) each.textContent = waitingBadge(feed);
}

/** Says where the sign-in is too old for changes; written once, since it is read out. */
function showNotice() {
  const mayChange = session !== null && may(session.principal.role, "approval.review");
  const text = mayChange ? staleNotice(session, isRefused) : null;
  if (at("notice").hidden === (text === null)) return;
  at("notice").hidden = text === null;
  fill(at("notice"), text);
}

feed.subscribe((change_) => {
  if (change_.overview || change_.approvals || change_.status || change_.reloaded) showStanding();
});

function enter(next) {
  session = next;
  wasEntered = true;
  const { tenant, role, name } = session.principal;
  at("who").textContent = [name, tenant, role].filter(Boolean).map(visible).join(" · ");
  at("sign-out").hidden = session.sign_out !== true;
  showNotice();
  showNav();
  feed.open();
  showStanding();
  showPage();
}

/** Nobody is signed in: what is public, why there is no more, and the ways in. */
async function leave(next) {
  if (at("page").querySelector(".ways") !== null) return showHealth();
  feed.close();
  shown?.close();
  shown = null;
  session = null;
  at("pages").hidden = true;
  at("who").textContent = "";
  at("sign-out").hidden = true;
  at("title").textContent = "Sign in to see this gateway";
  document.title = gateway;
  fill(at("page"), waysIn(next));
  fill(at("notice")).hidden = true;
  await showHealth();
}

async function showHealth() {
  const { service } = await read("/");
  at("health").textContent = `${service.status} · ${visible(service.version)}`;
}

async function begin() {
  try {
    const next = await readSession();
    // What was shown may have been another's: whoever comes back begins anew.
    if (next.authenticated && wasEntered) return location.reload();
    if (next.authenticated) return enter(next);
    await leave(next);
  } catch (error) {
    at("health").textContent = `no answer: ${visible(error.message)}`;
  }
  setTimeout(begin, retryMs);
}

/** Looks whether the session is still the same: another tab may have ended or renewed it. */
async function recheck() {
  if (session === null || document.hidden) return;
  const next = await readSession().catch(() => null);
  if (next === null || session === null) return;
  if (!next.authenticated || next.principal.id !== session.principal.id) return location.reload();
  if (next.signed_in_at !== session.signed_in_at) isRefused = false;
  session = next;
  showNotice();
}

access.addEventListener("stale", () => {
  isRefused = true;
  showNotice();
  at("notice").scrollIntoView({ block: "nearest" });
});
access.addEventListener("ended", () => {
  if (session === null) return;
  session = null;
  begin();
});
addEventListener("hashchange", showPage);
document.addEventListener("visibilitychange", recheck);
setInterval(recheck, recheckMs);
onSecond(showNotice);

addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select") !== null;
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || session === null) return;
  const name = [...pages.keys()][Number(event.key) - 1];
  if (name !== undefined) location.hash = `#/${name}`;
  else if (event.key === "/") {
    at("page").querySelector("input[type=search]")?.focus();
    event.preventDefault();
  }
});

at("sign-out").addEventListener("click", async () => {
  await change("/console/sign-out").catch(() => undefined);
  location.reload();
});

openTheme(at("theme"));
begin();
