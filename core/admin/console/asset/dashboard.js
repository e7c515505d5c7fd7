// What agents and upstreams chose is only ever put in as text: there is no way from a name to markup.

const mostDecisions = 200;
const mostSessions = 20;
const retryMs = 5_000;
const refreshMs = 10_000;

const at = (id) => document.getElementById(id);

/** An element with texts and elements inside. */
function make(tag, className, ...inside) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...inside.map((each) => (typeof each === "number" ? String(each) : each)));
  return element;
}

/** Characters that do not show as themselves: the same as in `core/action/visible-text.ts`. */
const hidden = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|[^\P{Zs} ]|\\(?=u\{)/gu;

/** Characters that show as nothing, or turn others around, as their code points. */
function visible(text) {
  return String(text).replace(hidden, (each) => `\\u{${each.codePointAt(0).toString(16)}}`);
}

/** The words for what an action does, by the effect of its facts. They name nothing of its arguments. */
const effectWords = new Map([
  ["read", "reads"],
  ["write", "writes"],
  ["delete", "deletes"],
  ["execute", "runs anything"],
  ["network", "uses the network"],
  ["unknown", "cannot be told"],
]);
const effectOf = (effect) => (effect ? (effectWords.get(effect) ?? visible(effect)) : "–");

const timeOf = (iso) => new Date(iso).toLocaleTimeString([], { hour12: false });
const ms = (us) => (us === null || us === undefined ? "–" : `${(us / 1_000).toFixed(us < 10_000 ? 2 : 0)} ms`);

function fill(list, items, nothing) {
  list.replaceChildren(...(items.length > 0 ? items : [make("li", "faint", nothing)]));
}

/** Rows wait for the next frame: a thousand decisions a second are one change of the page each frame. */
const waiting = [];
let frame = 0;

function show(event) {
  waiting.push(event);
  if (waiting.length > mostDecisions) waiting.splice(0, waiting.length - mostDecisions);
  if (frame === 0) frame = requestAnimationFrame(draw);
}

function draw() {
  frame = 0;
  const body = at("decisions");
  body.prepend(...waiting.splice(0).reverse().map(rowOf));
  while (body.rows.length > mostDecisions) body.lastElementChild.remove();
}

function rowOf({ time, data }) {
  const rules = data.by_default ? "by default" : data.rules.map(visible).join(", ");
  return make(
    "tr",
    "",
    make("td", "", timeOf(time)),
    make("td", data.decision, data.decision),
    make("td", "", visible(data.tool)),
    make("td", "", effectOf(data.effect)),
    make("td", "", visible(data.target)),
    make("td", "", visible(data.label === null ? data.principal : `${data.principal} · ${data.label}`)),
    make("td", "", rules),
    make("td", "", data.risk),
  );
}

let lastTotal;

function showRates({ allow, review, block, total, policy_p50_us: p50, policy_p99_us: p99 }) {
  const now = performance.now();
  at("allow").textContent = allow.toLocaleString();
  at("review").textContent = review.toLocaleString();
  at("block").textContent = block.toLocaleString();
  at("p50").textContent = ms(p50);
  at("p99").textContent = ms(p99);
  if (lastTotal !== undefined && now > lastTotal.at) {
    at("rate").textContent = Math.round(((total - lastTotal.total) * 1_000) / (now - lastTotal.at)).toLocaleString();
  }
  lastTotal = { total, at: now };
}

const approvals = new Map();

function showApprovals() {
  const items = [...approvals.values()].map(({ id, tool, target, capability, risk, expires_at: until }) =>
    make(
      "li",
      "",
      make("span", "review", visible(capability)),
      ` ${visible(tool)} on ${visible(target)}, risk ${risk} `,
      make("div", "faint", `until ${timeOf(until)} · gateway approvals show ${visible(id)}`),
    ),
  );
  at("approvals-count").textContent = approvals.size > 0 ? `(${approvals.size})` : "";
  fill(at("approvals"), items, "Nothing waits.");
}

const sessions = new Map();

function showSessions() {
  const worst = [...sessions.values()].sort((a, b) => b.risk - a.risk).slice(0, mostSessions);
  sessions.clear();
  for (const each of worst) sessions.set(each.session, each);
  const items = worst.map(({ session, label, risk, taints = [], killed }) => {
    const name = visible(label ?? `${session.slice(0, 22)}…`);
    const meter = make("meter", "");
    Object.assign(meter, { min: 0, max: 100, low: 40, high: 80, value: risk });
    meter.setAttribute("aria-label", `risk of ${name}`);
    const state = killed ? [make("span", "block", ` stopped: ${visible(killed)}`)] : [];
    const words = taints.length > 0 ? [make("div", "faint", `tainted: ${taints.map(visible).join(", ")}`)] : [];
    return make("li", "", `${name} `, make("span", "faint", `risk ${risk}`), ...state, meter, ...words);
  });
  fill(at("sessions"), items, "No session stands out.");
}

/** As the channel `risk` tells it. */
function knownAs({ session, state, risk = 0, taints = [] }) {
  return { session, label: null, risk, taints, ...(state === "active" ? {} : { killed: state }) };
}

function showPeers({ upstreams, providers }) {
  const items = [
    ...upstreams.map(({ name, state, ...rest }) => [name, state ?? rest.status ?? "", "upstream"]),
    ...providers.map(({ name, breaker }) => [name, breaker, "provider"]),
  ].map(([name, state, kind]) =>
    make("li", "", `${visible(name)} `, make("span", "faint", `${kind}, ${visible(state)}`)),
  );
  fill(at("peers"), items, "None is configured.");
}

function showEvidence({ writable, seq, state }) {
  fill(at("evidence"), [
    make("li", "", "Records ", make("span", "number", (seq + 1).toLocaleString())),
    make("li", "", "Chain ", make("span", state === "ready" ? "allow" : "block", visible(state))),
    make("li", "", "Disk ", make("span", writable ? "allow" : "block", writable ? "takes records" : "takes none")),
  ]);
}

function showExtensions(extensions) {
  const items = extensions.map(({ kind, name, version, signer }) =>
    make(
      "li",
      "",
      `${visible(name)} ${visible(version)} `,
      make("span", "faint", `${kind}, ${signedBy(kind, signer)}`),
    ),
  );
  fill(at("extensions"), items, "None is loaded.");
}

function showShadowDecisions(decisions) {
  const words = { review: "would have held", block: "would have blocked" };
  const items = decisions.map(({ rule, decision, count, last_time: last }) =>
    make(
      "li",
      "",
      `${visible(rule)} `,
      make("span", decision, `${words[decision]} ${count.toLocaleString()}`),
      make("div", "faint", `last at ${timeOf(last)}`),
    ),
  );
  fill(at("shadow-decisions"), items, "Nothing yet.");
}

const signedBy = (kind, signer) =>
  kind === "session" ? "built in" : signer ? `signed by ${visible(signer)}` : "unsigned";

function showAll(data) {
  const { tenant, role } = data.authentication;
  at("who").textContent = `${visible(tenant)} · ${role}`;
  at("decisions").replaceChildren();
  for (const event of [...data.decisions].reverse()) show(event);
  showRates(data.rates);
  sessions.clear();
  for (const each of data.sessions)
    if (each.risk > 0 || each.state !== "active") sessions.set(each.session, knownAs(each));
  approvals.clear();
  for (const each of data.approvals) approvals.set(each.id, each);
  showApprovals();
  showSessions();
  showStanding(data);
}

/** What no channel tells of. */
function showStanding(data) {
  showShadowDecisions(data.shadow_decisions);
  showPeers(data);
  showEvidence(data.evidence);
  showExtensions(data.extensions);
}

function showHealth({ status, version }) {
  at("health").textContent = `${status} · ${version}`;
}

/** Whether the data came, and not only the notice. */
async function refresh(isFirst) {
  const response = await fetch("/", { headers: { accept: "application/json" }, cache: "no-store" });
  const data = await response.json();
  if (!response.ok) throw new Error(data.detail ?? String(response.status));
  showHealth(data.service);
  const { notice } = data.authentication;
  at("notice").hidden = notice === undefined;
  at("notice").textContent = notice ?? "";
  if (notice !== undefined) return false;
  if (isFirst) showAll(data);
  else showStanding(data);
  return true;
}

const heard = {
  decisions: (event) => show(event),
  metrics: ({ data }) => showRates(data),
  risk: ({ data }) => {
    const { session = data.principal ?? data.tenant ?? "gateway" } = data;
    sessions.set(session, { label: null, risk: 0, ...sessions.get(session), ...data, session });
    showSessions();
  },
  approvals: ({ data }) => {
    if (data.state === "pending") approvals.set(data.id, data);
    else approvals.delete(data.id);
    showApprovals();
  },
};

function listen() {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/v1/ws`);
  socket.onmessage = ({ data }) => {
    const { type, payload } = JSON.parse(data);
    if (type === "auth_ok") {
      at("live").textContent = "live";
      socket.send(JSON.stringify({ type: "subscribe", payload: { channels: Object.keys(heard) } }));
    }
    if (type === "event") heard[payload.channel]?.(payload);
  };
  socket.onclose = () => {
    at("live").textContent = "not live";
    setTimeout(begin, retryMs);
  };
}

async function begin() {
  try {
    if (await refresh(true)) listen();
    else setTimeout(begin, refreshMs);
  } catch (error) {
    at("health").textContent = `no answer: ${error.message}`;
    setTimeout(begin, retryMs);
  }
}

setInterval(() => {
  if (at("live").textContent === "live" && !document.hidden) refresh(false).catch(() => undefined);
}, refreshMs);

begin();
