import { Client } from "undici";
import { quantile } from "./quantile.ts";

export interface LoadResult {
  readonly calls: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Until the first bytes of an answer that have `firstToken` in them, at the median; 0 where none was asked for. */
  readonly firstTokenMs: number;
  readonly errors: number;
}

export interface LoadOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Origins that connections are spread over in turn; that of `url` where absent. */
  readonly origins?: readonly string[];
  /** The API key of the n-th request, where it is not among `headers`. */
  readonly key?: (n: number) => string;
  /** The body of the n-th request. */
  readonly body: (n: number) => string;
  /** The session label of the n-th request, where it has one. */
  readonly label?: (n: number) => string;
  readonly connections: number;
  /** How long it lasts: until the first of both that is given. */
  readonly seconds?: number;
  readonly calls?: number;
  readonly firstToken?: string;
}

interface Measured {
  readonly latencies: number[];
  readonly firstTokens: number[];
  errors: number;
}

/** Keeps `connections` sockets busy with one request each at a time, and measures every answer. */
export async function measureLoad(options: LoadOptions): Promise<LoadResult> {
  const start = performance.now();
  const { latencies, firstTokens, errors } = await run(options);
  const elapsed = (performance.now() - start) / 1000;
  return {
    calls: latencies.length,
    requestsPerSecond: latencies.length / elapsed,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    firstTokenMs: quantile(firstTokens, 0.5),
    errors,
  };
}

async function run(options: LoadOptions): Promise<Measured> {
  const { calls = Number.POSITIVE_INFINITY, seconds = Number.POSITIVE_INFINITY } = options;
  const { origin, pathname } = new URL(options.url);
  const { origins = [origin] } = options;
  const until = performance.now() + seconds * 1000;
  const measured: Measured = { latencies: [], firstTokens: [], errors: 0 };
  let count = 0;
  const drive = async (at: string): Promise<void> => {
    const client = new Client(at, { pipelining: 1 });
    while (count < calls && performance.now() < until) {
      const n = ++count;
      const headers = headersOf(options, n);
      const start = performance.now();
      const response = await client.request({ method: "POST", path: pathname, headers, body: options.body(n) });
      let text = "";
      let isFirst = options.firstToken !== undefined;
      for await (const chunk of response.body.setEncoding("utf8")) {
        text += chunk;
        if (!isFirst || !text.includes(options.firstToken as string)) continue;
        isFirst = false;
        measured.firstTokens.push(performance.now() - start);
      }
      measured.latencies.push(performance.now() - start);
      if (response.statusCode !== 200 || text.includes('"isError":true') || text.includes('"error"')) measured.errors++;
    }
    await client.close();
  };
  await Promise.all(
    Array.from({ length: options.connections }, (_, each) => drive(origins[each % origins.length] ?? origin)),
  );
  return measured;
}

function headersOf({ headers, label, key }: LoadOptions, n: number): Readonly<Record<string, string>> {
  return {
    "content-type": "application/json",
    ...headers,
    ...(key === undefined ? {} : { "x-api-key": key(n) }),
    ...(label === undefined ? {} : { "x-gateway-session-id": label(n) }),
  };
}
