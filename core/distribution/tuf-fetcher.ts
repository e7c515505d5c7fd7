import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Fetcher } from "tuf-js";
import { DownloadHTTPError } from "tuf-js/dist/error.js";
import { GatewayError } from "../action/error.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import { type ExchangeFaults, HttpExchange } from "./http-exchange.ts";
import { tufRefusal } from "./tuf-refusal.ts";

const faults: ExchangeFaults = {
  unreachable: (text, cause) => new GatewayError("TUF_UNREACHABLE", text, { cause }),
  tooLarge: (url, maxBytes) => tufRefusal("too_large", fileOf(url), `at most ${maxBytes} bytes, got more`),
};

/** Fetches the files of a TUF repository for the library, through the gateway's way out. Follows no redirect. */
export class TufFetcher implements Fetcher {
  /** The name of the file that was asked for last. */
  lastFile = "root.json";
  /** The error of the last fetch; the library passes on its text alone. A root that is not there yet is no failure. */
  fault: GatewayError | undefined;
  readonly #http: HttpExchange;
  readonly #folder: string;

  /** `folder`: for files that exist while they are verified. */
  constructor(repository: URL, egress: EgressGuard, folder: string) {
    this.#http = new HttpExchange(repository, egress, faults);
    this.#folder = folder;
  }

  close(): Promise<void> {
    return this.#http.close();
  }

  async downloadBytes(address: string, maxLength: number): Promise<Buffer> {
    const url = new URL(address);
    this.lastFile = fileOf(url);
    const { status, body } = await this.#http
      .send({ url, method: "GET", headers: {}, maxBytes: maxLength })
      .catch((cause) => {
        this.fault = GatewayError.from(cause);
        throw cause;
      });
    if (status === 200) return body;
    const isNextRoot = /^\d+\.root\.json$/.test(this.lastFile) && (status === 403 || status === 404);
    if (!isNextRoot) this.fault = statusFault(url, status);
    throw this.fault ?? new DownloadHTTPError(`HTTP ${status}`, status);
  }

  async downloadFile<T>(address: string, maxLength: number, handler: (file: string) => Promise<T>): Promise<T> {
    const bytes = await this.downloadBytes(address, maxLength);
    const folder = await mkdtemp(join(this.#folder, "download-"));
    try {
      const file = join(folder, "file");
      await writeFile(file, bytes);
      return await handler(file);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

function statusFault(url: URL, status: number): GatewayError {
  if (status === 429 || status >= 500) return faults.unreachable(`\`${url.host}\`: HTTP ${status}`);
  return tufRefusal("file_missing", fileOf(url), `a file of a TUF repository, got HTTP ${status}`);
}

function fileOf({ pathname }: URL): string {
  return decodeURIComponent(pathname.slice(pathname.lastIndexOf("/") + 1)).replace(/^[0-9a-f]{64,128}\./, "");
}
