import { Client } from "undici";

export interface LoadResult {
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
  /** The body of the n-th request. */
  readonly body: (n: number) => string;
  readonly connections: number;
  readonly seconds: number;
  readonly firstToken?: string;
}

interface Measured {
  readonly latencies: number[];
  readonly firstTokens: number[];
  errors: number;
}

/** Keeps `connections` sockets busy with one request each at a time, and measures every answer. */
export async function measureLoad(options: LoadOptions): Promise<LoadResult> {
  await run(options, Math.min(1, options.seconds)); // warm
  const start = performance.now();
  const { latencies, firstTokens, errors } = await run(options, options.seconds);
  const elapsed = (performance.now() - start) / 1000;
  return {
    requestsPerSecond: latencies.length / elapsed,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    firstTokenMs: quantile(firstTokens, 0.5),
    errors,
  };
}

/** The value below which such a share of them lies; 0 where there are none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

async function run(options: LoadOptions, seconds: number): Promise<Measured> {
  const { origin, pathname } = new URL(options.url);
  const until = performance.now() + seconds * 1000;
  const measured: Measured = { latencies: [], firstTokens: [], errors: 0 };
  let count = 0;
  const headers = { "content-type": "application/json", ...options.headers };
  const drive = async (): Promise<void> => {
    const client = new Client(origin, { pipelining: 1 });
    while (performance.now() < until) {
      const start = performance.now();
      const response = await client.request({ method: "POST", path: pathname, headers, body: options.body(++count) });
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
  await Promise.all(Array.from({ length: options.connections }, drive));
  return measured;
}
