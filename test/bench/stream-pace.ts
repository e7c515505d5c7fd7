import { Client } from "undici";
import { quantile } from "./quantile.ts";

export interface PaceOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** What each token of the answer has in it, and nothing else. */
  readonly token: RegExp;
  readonly streams: number;
}

export interface Pace {
  readonly firstTokenMs: number;
  /** Until any token, at the median: how far a reader is behind. */
  readonly tokenMs: number;
  /** Between the arrivals of two tokens, the 99th of a hundred: the longest that a reader sees nothing new. */
  readonly p99GapMs: number;
}

/** Reads streams one after the other, and says when their tokens came. */
export async function measurePace(options: PaceOptions): Promise<Pace> {
  const { origin, pathname: path } = new URL(options.url);
  const client = new Client(origin);
  const headers = { "content-type": "application/json", ...options.headers };
  const first: number[] = [];
  const tokens: number[] = [];
  const gaps: number[] = [];
  for (let stream = 0; stream < options.streams; stream++) {
    const start = performance.now();
    const response = await client.request({ method: "POST", path, headers, body: options.body });
    const arrivals: number[] = [];
    for await (const chunk of response.body.setEncoding("utf8")) {
      const count = String(chunk).match(options.token)?.length ?? 0;
      for (let token = 0; token < count; token++) arrivals.push(performance.now() - start);
    }
    first.push(arrivals[0] ?? 0);
    tokens.push(...arrivals);
    for (const [index, at] of arrivals.entries()) if (index > 0) gaps.push(at - (arrivals[index - 1] as number));
  }
  await client.close();
  return { firstTokenMs: quantile(first, 0.5), tokenMs: quantile(tokens, 0.5), p99GapMs: quantile(gaps, 0.99) };
}
