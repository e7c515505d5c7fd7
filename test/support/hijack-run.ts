import type { Script } from "./hijack.ts";
import type { Result, WatchedSite } from "./watched-site.ts";

/** What became of one script. */
export interface Run {
  readonly name: string;
  readonly results: readonly Result[];
  /** Whether an injected step reached anyone. */
  readonly harmed: boolean;
}

/** Takes each script through a session of its own. */
export async function runScripts(site: WatchedSite, scripts: readonly Script[]): Promise<readonly Run[]> {
  const runs: Run[] = [];
  for (const { name, steps, injected } of scripts) {
    const session = site.session(name.replace(/[^a-z]+/gi, "-"));
    const results = await session.run(steps);
    await session.end();
    const harmed = steps.some((step, index) => injected.has(step) && results[index]?.reached === true);
    runs.push({ name, results, harmed });
  }
  return runs;
}

/** How many of the runs came upon something of the kind, and which. */
export function runsWith(runs: readonly Run[], state: Result["state"]): readonly string[] {
  return runs.filter(({ results }) => results.some((result) => result.state === state)).map(({ name }) => name);
}
