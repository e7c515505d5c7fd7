import { GatewayError } from "../action/error.ts";
import { type Principal, sessionScope } from "../action/principal.ts";
import { escapeHidden } from "../action/visible-text.ts";
import type { SessionSummary } from "../evidence/chain/session-record.ts";
import type { Ledger } from "../evidence/ledger.ts";
import { anonymousPrincipal } from "../identity/key-ring.ts";
import type { Store } from "../store/open.ts";
import { groupRange, sessionOfHead } from "./session-entry.ts";

interface SessionNamesOptions {
  readonly store: Store;
  readonly ledger: Pick<Ledger, "findSessions" | "readSessions">;
  readonly keys: {
    principalsOf(tenant: string): readonly Principal[];
    keyId(tenant: string, principal: string): string | undefined;
  };
}

/** A name that is a label, as it is or, for paths, in base64url. */
const labelName = /^label(64)?:(.*)$/s;
const wholeId = /^session-v1-[0-9a-f]{64}$/;
const idStart = /^session-v1-[0-9a-f]{4,63}$/;
/** Sessions that the refusal of an ambiguous name lists. */
const maxListed = 5;
const maxReadAtOnce = 500;

/** Finds the session of a tenant that an operator names: by its id, the beginning of that, or its label. */
export class SessionNames {
  readonly #options: SessionNamesOptions;

  constructor(options: SessionNamesOptions) {
    this.#options = options;
  }

  /**
   * Returns the id of a session. A whole id is returned as it is, looked up or not: evidence that cannot be read prevents nobody
   * from stopping a session. Throws NOT_FOUND where the tenant has no session of this name, and SESSION_AMBIGUOUS, with
   * the ids, where it has several.
   */
  async resolve(tenant: string, name: string): Promise<string> {
    if (wholeId.test(name)) return name;
    const found = await this.#find(tenant, name);
    const [first] = found;
    if (first === undefined) throw new GatewayError("NOT_FOUND", "no such session");
    if (found.length > 1) throw this.#ambiguous(tenant, name, found);
    return first.id;
  }

  /** The labels of some sessions by their ids, as far as they have one and evidence stores it and can be read. */
  async labelsOf(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const found = await this.#options.ledger.readSessions(tenant, ids).catch(() => []);
    return new Map(found.flatMap(({ id, label }) => (label === undefined ? [] : [[id, label] as const])));
  }

  async #find(tenant: string, name: string): Promise<readonly SessionSummary[]> {
    const [isLabel, isEncoded, label = ""] = labelName.exec(name) ?? [];
    if (isLabel !== undefined) {
      return this.#findByLabel(tenant, isEncoded === undefined ? label : Buffer.from(label, "base64url").toString());
    }
    return idStart.test(name) ? this.#options.ledger.findSessions(tenant, name, maxListed + 1) : [];
  }

  /**
   * The sessions of a label, one at most of each principal: those of the tenant's keys, and those that acted within
   * `sessions.idle_retention_days`. An id follows from principal and label, so it is found where no label is stored.
   */
  async #findByLabel(tenant: string, label: string): Promise<readonly SessionSummary[]> {
    const { store, ledger, keys } = this.#options;
    const principals = new Set([...keys.principalsOf(tenant), anonymousPrincipal(tenant)].map(({ id }) => id));
    for await (const key of store.keys(groupRange(tenant))) principals.add(sessionOfHead(key).split("/")[0] ?? "");
    const ids = [...principals].map((principal) => sessionScope("http", tenant, principal, label).id);
    const found: SessionSummary[] = [];
    for (let at = 0; at < ids.length && found.length <= maxListed; at += maxReadAtOnce) {
      found.push(...(await ledger.readSessions(tenant, ids.slice(at, at + maxReadAtOnce))));
    }
    return found;
  }

  #ambiguous(tenant: string, name: string, found: readonly SessionSummary[]): GatewayError {
    const { keys } = this.#options;
    const listed = found.slice(0, maxListed);
    const rows = listed.map(({ id, principal }) => `${id} (${keys.keyId(tenant, principal) ?? principal})`);
    const more = found.length > maxListed ? ", and more" : "";
    const detail = `expected the name of one, got \`${escapeHidden(name)}\` of ${rows.join(", ")}${more}; name one by its id`;
    return new GatewayError("SESSION_AMBIGUOUS", detail, { data: { sessions: listed.map(({ id }) => id) } });
  }
}
