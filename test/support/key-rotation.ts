import { parseCheckpoint, type SignedCheckpoint } from "../../core/evidence/tree/checkpoint.ts";
import type { PublishedCheckpoint, PublishedKeys } from "../../core/evidence/witness/witness-publisher.ts";

/** An answer of the admin port. */
export interface AdminAnswer<T> {
  readonly status: number;
  readonly body: T;
}

/** Asks a running gateway about the keys of its caller's chain, and for new ones. */
export class KeyDesk {
  readonly #url: string;
  readonly #key: string | null;

  constructor(adminUrl: string, key: string | null) {
    this.#url = `${adminUrl}/admin/v1/evidence`;
    this.#key = key;
  }

  rotate(): Promise<AdminAnswer<{ readonly tenant: string; readonly key_id: string; readonly code?: string }>> {
    return this.#ask("POST", "/keys/rotate");
  }

  async keys(): Promise<PublishedKeys> {
    return (await this.#ask<PublishedKeys>("GET", "/keys")).body;
  }

  /** The latest checkpoint, and the ids of the keys whose signature it carries. */
  async checkpoint(): Promise<{ readonly checkpoint: SignedCheckpoint; readonly signers: readonly string[] }> {
    const { body } = await this.#ask<PublishedCheckpoint>("GET", "/checkpoint");
    const checkpoint = parseCheckpoint(body.note);
    if (checkpoint === undefined) throw new Error(`expected a checkpoint, got ${body.note}`);
    return { checkpoint, signers: checkpoint.note.signatures.map(({ name }) => name.slice(name.lastIndexOf("/") + 1)) };
  }

  async #ask<T>(method: string, path: string): Promise<AdminAnswer<T>> {
    const headers = { "content-type": "application/json", ...(this.#key === null ? {} : { "x-api-key": this.#key }) };
    const response = await fetch(this.#url + path, { method, headers });
    return { status: response.status, body: (await response.json()) as T };
  }
}
