/** What `/metrics` of a gateway says: series with their labels, as they are written there, to values. */
export type Scrape = ReadonlyMap<string, number>;

/** The exposition text of the metrics port. */
export async function scrapeText(metricsUrl: string): Promise<string> {
  const response = await fetch(`${metricsUrl}/metrics`);
  if (response.status !== 200) throw new Error(`expected 200 of /metrics, got ${response.status}`);
  return response.text();
}

export async function scrape(metricsUrl: string): Promise<Scrape> {
  const lines = (await scrapeText(metricsUrl)).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
  );
}
