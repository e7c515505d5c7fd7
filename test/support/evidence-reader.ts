import type { SessionSummary } from "../../core/evidence/chain/session-record.ts";
import type { ActionRecord } from "../../core/evidence/record/record.ts";
import type { VerifyReport } from "../../core/evidence/verify/verification.ts";

interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

/** Reads a tenant's evidence over the admin port. Throws for every answer but 200. */
export class EvidenceReader {
  readonly #url: string;
  readonly #key: string;

  constructor(adminUrl: string, key: string) {
    this.#url = `${adminUrl}/admin/v1`;
    this.#key = key;
  }

  verify(): Promise<VerifyReport> {
    return this.#ask<VerifyReport>("POST", "/audit/verify");
  }

  /** The sessions, the latest begun first: at most 500. */
  async sessions(): Promise<readonly SessionSummary[]> {
    return (await this.#sessionsAt("")).items;
  }

  /** The records of one session, in order. */
  async records(session: string): Promise<readonly ActionRecord[]> {
    const records: ActionRecord[] = [];
    for (let cursor: string | null = "0"; cursor !== null; ) {
      const path = `/evidence/sessions/${session}?limit=500&cursor=${cursor}`;
      const page: Page<ActionRecord> = await this.#ask("GET", path);
      records.push(...page.items);
      cursor = page.next;
    }
    return records;
  }

  /** The records of all sessions whose label `wanted` says yes to. */
  async recordsOf(wanted: (label: string | undefined) => boolean = () => true): Promise<readonly ActionRecord[]> {
    const records: ActionRecord[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: Page<SessionSummary> = await this.#sessionsAt(cursor);
      const sessions = page.items.filter(({ label }) => wanted(label));
      records.push(...(await Promise.all(sessions.map(({ id }) => this.records(id)))).flat());
      cursor = page.next;
    }
    return records;
  }

  #sessionsAt(cursor: string): Promise<Page<SessionSummary>> {
    return this.#ask("GET", `/evidence/sessions?limit=500${cursor === "" ? "" : `&cursor=${cursor}`}`);
  }

  async #ask<T>(method: string, path: string): Promise<T> {
    // A connection that was kept may be one that a replica forwarded: it ends with its owner.
    const headers = { "x-api-key": this.#key, connection: "close" };
    const response = await fetch(this.#url + path, { method, headers });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`expected 200 of ${method} ${path}, got ${response.status}: ${text}`);
    return JSON.parse(text) as T;
  }
}
