import { Client } from "undici";

export interface LoadResult {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly errors: number;
}

export interface LoadOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body of the n-th request. */
  readonly body: (n: number) => string;
  readonly connections: number;
  readonly seconds: number;
}

/** Keeps `connections` sockets busy with one request each at a time, and measures every answer. */
export async function measureLoad(options: LoadOptions): Promise<LoadResult> {
  await run(options, Math.min(1, options.seconds)); // warm
  const start = performance.now();
  const { latencies, errors } = await run(options, options.seconds);
  const elapsed = (performance.now() - start) / 1000;
  latencies.sort();
  const at = (share: number): number =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  return { requestsPerSecond: latencies.length / elapsed, p50Ms: at(0.5), p99Ms: at(0.99), errors };
}

async function run(options: LoadOptions, seconds: number): Promise<{ latencies: Float64Array; errors: number }> {
  const { origin, pathname } = new URL(options.url);
  const until = performance.now() + seconds * 1000;
  const latencies: number[] = [];
  let errors = 0;
  let count = 0;
  const headers = { "content-type": "application/json", ...options.headers };
  const drive = async (): Promise<void> => {
    const client = new Client(origin, { pipelining: 1 });
    while (performance.now() < until) {
      const start = performance.now();
      const response = await client.request({ method: "POST", path: pathname, headers, body: options.body(++count) });
      const text = await response.body.text();
      latencies.push(performance.now() - start);
      if (response.statusCode !== 200 || text.includes('"isError":true') || text.includes('"error"')) errors++;
    }
    await client.close();
  };
  await Promise.all(Array.from({ length: options.connections }, drive));
  return { latencies: Float64Array.from(latencies), errors };
}
