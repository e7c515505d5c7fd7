/** The gateway's refusal of a request, or its silence. */
export class Refusal extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** What is heard where the gateway refuses the sign-in itself: `stale` for one that is too old, `ended` for none. */
export const access = new EventTarget();

let csrf = "";

/** The token of the console session that changes carry. */
export function useToken(token) {
  csrf = token ?? "";
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", credentials: "same-origin", ...options });
  } catch (cause) {
    if (cause.name === "AbortError") throw cause;
    throw new Refusal(0, "UNREACHABLE", "the gateway did not answer; look whether it runs, then try again");
  }
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  const refusal = new Refusal(response.status, body.code ?? "UNKNOWN", body.detail ?? `status ${response.status}`);
  if (refusal.status === 401 && refusal.code !== "SIGN_IN_STALE") access.dispatchEvent(new Event("ended"));
  throw refusal;
}

const headers = { accept: "application/json" };

/** Reads something; `query` without the members that are empty. */
export function read(path, query = {}, signal = null) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given).toString();
  return ask(text === "" ? path : `${path}?${text}`, { headers, signal });
}

/** Asks for something that takes a POST and changes nothing. */
export function run(path) {
  return ask(path, { method: "POST", headers: { ...headers, "x-csrf-token": csrf } });
}

/** Changes something. A token that another tab, or the proxy behind which this page is, has renewed meanwhile is read once more. */
export async function change(path, body = {}) {
  const send = () => {
    const own = { ...headers, "content-type": "application/json", "x-csrf-token": csrf };
    return ask(path, { method: "POST", headers: own, body: JSON.stringify(body) });
  };
  try {
    return await send();
  } catch (error) {
    if (error.code !== "CSRF_INVALID" && error.code !== "SIGN_IN_STALE") throw error;
    const before = csrf;
    useToken((await read("/console/session")).csrf);
    if (csrf !== before) return send();
    if (error.code === "SIGN_IN_STALE") access.dispatchEvent(new Event("stale"));
    throw error;
  }
}

const pageSize = 500;

/** The items of a list, page by page, up to `max`; `rest` is true where there are more. */
export async function readAll(path, query, max, signal = null) {
  const items = [];
  let cursor;
  do {
    const page = await read(path, { limit: Math.min(pageSize, max), ...query, cursor }, signal);
    items.push(...page.items);
    cursor = page.next;
  } while (cursor !== null && items.length < max);
  return { items, rest: cursor !== null };
}

const permitted = {
  viewer: [],
  operator: ["approval.review", "evidence.disclose", "evidence.verify", "session.kill", "webhook.read"],
  admin: ["approval.review", "evidence.disclose", "evidence.verify", "session.kill", "webhook.read", "gateway.kill"],
};

/** Returns whether a role has one of the permissions that a viewer lacks. The gateway decides; this only leaves out buttons. */
export const may = (role, permission) => (permitted[role] ?? []).includes(permission);

/** The sentence in place of what a role may not use. */
export const needs = (role, what) => `${what} needs the role operator or admin; you are signed in as ${role}.`;
