import { setTimeout as sleep } from "node:timers/promises";
import type { Approval } from "../../../core/action/approval.ts";
import type { World } from "./world.ts";

/** Who reviews what the agents of a world ask for, over the admin port. */
export class Reviewer {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor({ gateway, reviewerKey }: World) {
    this.#url = `${gateway.adminUrl}/admin/v1`;
    this.#headers = { "x-api-key": reviewerKey, "content-type": "application/json" };
  }

  async list(state: "pending" | "approved" = "pending"): Promise<readonly Approval[]> {
    const response = await fetch(`${this.#url}/approvals?state=${state}&limit=100`, { headers: this.#headers });
    return ((await response.json()) as { items: readonly Approval[] }).items;
  }

  /**
   * The one approval that is pending, as soon as there is one and the record of it is on disk. Rejects after a minute, and
   * where there are more.
   */
  async awaitPending(): Promise<Approval> {
    for (const end = performance.now() + 60_000; performance.now() < end; await sleep(20)) {
      const [pending, ...more] = await this.list();
      if (more.length > 0) throw new Error(`expected one pending approval, got ${more.length + 1}`);
      if (pending !== undefined && pending.held_seq > 0 && (await this.#head()) >= pending.held_seq) return pending;
    }
    throw new Error("expected a pending approval within a minute");
  }

  approve(id: string): Promise<void> {
    return this.#post(`approvals/${id}/approve`, {});
  }

  deny(id: string, comment: string): Promise<void> {
    return this.#post(`approvals/${id}/deny`, { comment });
  }

  /** Says no to everything, so that nothing of one test waits for the next. */
  async clear(): Promise<void> {
    for (const { id } of await this.list()) await this.deny(id, "the test is over");
  }

  killSession(id: string): Promise<void> {
    return this.#post(`sessions/${id}/kill`, { note: "of the test" });
  }

  releaseSession(id: string): Promise<void> {
    return this.#post(`sessions/${id}/release`, { reason: "of the test" });
  }

  /** The sequence number of the tenant's last record. */
  async #head(): Promise<number> {
    const response = await fetch(`${this.#url}/audit/verify`, { method: "POST", headers: this.#headers });
    return ((await response.json()) as { head: { seq: number } }).head.seq;
  }

  async #post(path: string, body: object): Promise<void> {
    const request = { method: "POST", headers: this.#headers, body: JSON.stringify(body) };
    const response = await fetch(`${this.#url}/${path}`, request);
    if (response.status !== 200) throw new Error(`expected 200, got ${response.status}: ${await response.text()}`);
  }
}
