import { read, readAll } from "./api.js";

export const maxDecisions = 5_000;
const maxApprovals = 5_000;
const maxSessions = 20;
/** Seconds of the charts. */
export const maxSamples = 900;
const retryMs = 5_000;
const refreshMs = 10_000;

/**
 * The state that all pages share: loaded once, then kept current by `/v1/ws`. Whatever comes within one frame reaches the
 * pages as one change, and each list has a bound.
 */
export class Feed {
  /** The latest decisions, the oldest first. */
  decisions = [];
  /** Pending approvals by id, the oldest first. */
  approvals = new Map();
  /** The sessions with the highest risk, by id. */
  sessions = new Map();
  /** A point a second: decisions a second by kind, and policy times in µs. */
  samples = [];
  rates = null;
  /** What `GET /` said last; null before the first answer. */
  overview = null;
  isLive = false;
  #listeners = new Set();
  #change = noChange();
  /** Approvals that came and went while the list was read. */
  #arrived = new Map();
  #ended = new Set();
  #frame = 0;
  #socket = null;
  #timers = [];
  #isOpen = false;
  #load = Promise.resolve();

  /** Calls `listener` with each change, once a frame at most. Returns the function that ends that. */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  open() {
    this.#isOpen = true;
    this.#timers.push(setInterval(() => this.#refresh(), refreshMs));
    this.#loadAll();
    this.#listen();
  }

  close() {
    this.#isOpen = false;
    for (const each of this.#timers.splice(0)) clearInterval(each);
    this.#socket?.close();
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#setLive(false);
  }

  #listen() {
    if (!this.#isOpen) return;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/v1/ws`);
    this.#socket = socket;
    socket.onmessage = ({ data }) => {
      const { type, payload } = JSON.parse(data);
      if (type === "auth_ok") socket.send(JSON.stringify({ type: "subscribe", payload: { channels } }));
      // Loaded after it, so that nothing falls in between.
      else if (type === "subscribed") this.#begin();
      else if (type === "event") this.#take(payload);
    };
    socket.onclose = () => {
      this.#setLive(false);
      if (this.#isOpen) setTimeout(() => this.#listen(), retryMs);
    };
  }

  #begin() {
    this.#setLive(true);
    this.#loadAll();
  }

  #setLive(isLive) {
    if (this.isLive === isLive) return;
    this.isLive = isLive;
    this.#note({ status: true });
  }

  #take(event) {
    const { channel, data } = event;
    if (channel === "decisions") this.#decide(event);
    else if (channel === "metrics") this.#measure(data);
    else if (channel === "risk") this.#weigh(data);
    else this.#review(data);
  }

  #decide(event) {
    const { decisions } = this.#change;
    decisions.push(event);
    // Without frames, in a tab out of sight, what waits has a bound as well.
    if (decisions.length > 2 * maxDecisions) decisions.splice(0, decisions.length - maxDecisions);
    this.#note({});
  }

  #review(approval) {
    if (approval.state === "pending") {
      this.#arrived.set(approval.id, approval);
      this.approvals.set(approval.id, approval);
    } else {
      this.#ended.add(approval.id);
      this.approvals.delete(approval.id);
    }
    this.#note({ approvals: true });
  }

  #weigh(data) {
    this.#note({ sessions: true });
    // A stop or a release may be of a principal, of the tenant or of all: it stands in the same list while it lasts.
    const session = data.session ?? data.principal ?? ("tenant" in data ? "the whole tenant" : "the whole gateway");
    const known = { label: null, risk: 0, taints: [], ...this.sessions.get(session), ...data, session };
    if (data.session === undefined && known.killed === null) this.sessions.delete(session);
    else this.sessions.set(session, known);
    this.#keepWorst();
  }

  #keepWorst() {
    if (this.sessions.size <= maxSessions) return;
    const worst = [...this.sessions.values()].sort((a, b) => b.risk - a.risk).slice(0, maxSessions);
    this.sessions = new Map(worst.map((each) => [each.session, each]));
  }

  #measure(rates) {
    const time = Date.now();
    const last = this.rates;
    this.rates = { ...rates, time };
    if (last === null || time <= last.time) return;
    const perSecond = (name) => Math.max(0, ((rates[name] - last[name]) * 1_000) / (time - last.time));
    const sample = { time, p50: rates.policy_p50_us, p99: rates.policy_p99_us };
    for (const name of ["allow", "review", "block"]) sample[name] = perSecond(name);
    this.samples.push(sample);
    if (this.samples.length > maxSamples) this.samples.splice(0, this.samples.length - maxSamples);
    this.#note({ samples: true });
  }

  #loadAll() {
    this.#load = this.#load.then(() => this.#loadOnce()).catch(() => this.#note({ status: true }));
  }

  async #loadOnce() {
    if (!this.#isOpen) return;
    this.#arrived.clear();
    this.#ended.clear();
    const [overview, pending] = await Promise.all([
      read("/"),
      readAll("/admin/v1/approvals", { state: "pending" }, maxApprovals),
    ]);
    this.overview = overview;
    const known = new Set([...this.decisions, ...this.#change.decisions].map(({ data }) => data.id));
    this.decisions.push(...overview.decisions.toReversed().filter(({ data }) => !known.has(data.id)));
    this.decisions.sort((a, b) => (a.time < b.time ? -1 : Number(a.time > b.time)));
    if (this.samples.length === 0) this.samples.push(...samplesOf(this.decisions));
    if (this.rates === null || !this.isLive) this.#measure(overview.rates);
    const listed = pending.items.map((each) => [each.id, flatten(each)]);
    this.approvals = new Map([...listed, ...this.#arrived].filter(([id]) => !this.#ended.has(id)));
    for (const each of overview.sessions) {
      const { session, state, risk = 0, taints = [] } = each;
      const known = this.sessions.get(session);
      if (risk === 0 && state === "active" && known === undefined) continue;
      const killed = state === "active" ? null : (known?.killed ?? state);
      this.sessions.set(session, { label: null, ...known, session, risk, taints, killed });
    }
    this.#keepWorst();
    this.#note({ overview: true, approvals: true, sessions: true, samples: true, reloaded: true });
  }

  /** Reads again what no channel speaks of. */
  async #refresh() {
    if (document.hidden) return;
    if (!this.isLive) return this.#loadAll();
    try {
      this.overview = await read("/");
      this.#note({ overview: true });
    } catch {
      this.#note({ status: true });
    }
  }

  #note(what) {
    Object.assign(this.#change, what);
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#publish());
  }

  #publish() {
    this.#frame = 0;
    const change = this.#change;
    this.#change = noChange();
    this.decisions.push(...change.decisions);
    if (this.decisions.length > maxDecisions) this.decisions.splice(0, this.decisions.length - maxDecisions);
    for (const listener of [...this.#listeners]) listener(change);
  }
}

const channels = ["decisions", "approvals", "risk", "metrics"];

/** A change of one frame: its new decisions, and a flag for each other part of the state that is new. */
function noChange() {
  return { decisions: [] };
}

/** An approval as the channel has it. */
function flatten({ id, action, evaluation, principal, session, requested_at, expires_at, required, endorsements }) {
  const { tool, target, capability, protocol } = action;
  const { risk, rules } = evaluation;
  const names = { principal: principal.key_id, session: session.id };
  const review = { requested_at, expires_at, required, endorsed: endorsements.length };
  return { id, tool, target, capability, protocol, risk, rules, ...names, ...review };
}

/** Points for the decisions that were made before the page was opened. */
function samplesOf(decisions) {
  if (decisions.length === 0) return [];
  const end = Math.floor(Date.now() / 1_000);
  const start = Math.max(Math.floor(Date.parse(decisions[0].time) / 1_000), end - maxSamples + 1);
  const points = Array.from({ length: Math.max(0, end - start) }, (_, at) => ({
    ...{ time: (start + at) * 1_000, allow: 0, review: 0, block: 0, p50: null, p99: null },
  }));
  const durations = new Map();
  for (const { time, data } of decisions) {
    const at = Math.floor(Date.parse(time) / 1_000) - start;
    if (points[at] === undefined) continue;
    points[at][data.decision] += 1;
    durations.set(at, [...(durations.get(at) ?? []), data.duration_us]);
  }
  for (const [at, each] of durations) {
    const sorted = each.sort((a, b) => a - b);
    points[at].p50 = sorted[Math.floor((sorted.length - 1) / 2)];
    points[at].p99 = sorted.at(-1);
  }
  return points;
}
