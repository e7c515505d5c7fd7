import { Agent, type Dispatcher, fetch, type Response } from "undici";
import type { EgressGuard } from "../../egress/egress-guard.ts";
import { checkLog, maxNote, type Witness } from "./witness.ts";

interface HttpWitnessOptions {
  readonly name: string;
  readonly url: string;
  /** Sent with every request; values are secrets. */
  readonly headers: Readonly<Record<string, string>>;
  readonly egress: EgressGuard;
}

const deadlineMs = 10_000;

/**
 * A server that keeps notes: `POST <url>/<log>` (text/plain) answers 2xx once the note is kept, `GET <url>/<log>` answers
 * the latest one, or 404. Follows no redirect; 10 s each.
 */
export class HttpWitness implements Witness {
  readonly name: string;
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #dispatcher: Dispatcher;

  constructor({ name, url, headers, egress }: HttpWitnessOptions) {
    this.name = name;
    this.#url = url.replace(/\/$/, "");
    this.#headers = headers;
    this.#dispatcher = new Agent({ connect: egress.connector(new URL(url), deadlineMs) });
  }

  async append(log: string, note: string): Promise<void> {
    const response = await this.#ask(log, { method: "POST", body: note });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`expected 2xx from the witness, got ${response.status}`);
  }

  async latest(log: string): Promise<string | undefined> {
    const response = await this.#ask(log, { method: "GET" });
    if (response.status === 200) return readBounded(response);
    await response.body?.cancel();
    if (response.status === 404) return undefined;
    throw new Error(`expected 200 or 404 from the witness, got ${response.status}`);
  }

  #ask(log: string, request: { readonly method: string; readonly body?: string }): Promise<Response> {
    checkLog(log);
    return fetch(`${this.#url}/${log}`, {
      ...request,
      headers: { "content-type": "text/plain; charset=utf-8", ...this.#headers },
      redirect: "error",
      dispatcher: this.#dispatcher,
      signal: AbortSignal.timeout(deadlineMs),
    });
  }
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > maxNote) throw new Error(`expected a note of at most ${maxNote} bytes from the witness, got more`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
