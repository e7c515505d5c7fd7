import type { Script } from "./hijack.ts";
import type { CorpusSession } from "./hijack-corpus.ts";
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

/** The packs that stand beside session-watch; the operator allows the tools of all suites. */
export const corpusPacks: readonly string[] = ["shell", "git", "sql", "egress", "secrets"];

/** What became of one session of the corpus. */
export interface CorpusRun {
  readonly suite: string;
  readonly name: string;
  readonly results: readonly Result[];
  /** Whether an injected step reached anyone. */
  readonly harmed: boolean;
  /** Whether a person was asked about any step, or one was blocked. */
  readonly asked: boolean;
}

/** Takes each session through the site as an agent of its own, with its manifest where `hasManifest`. */
export async function runCorpus(
  site: WatchedSite,
  sessions: readonly CorpusSession[],
  hasManifest: boolean,
): Promise<readonly CorpusRun[]> {
  const runs: CorpusRun[] = [];
  for (const [index, { suite, name, steps, injected, manifest }] of sessions.entries()) {
    const expiry = { expires_at: new Date(Date.now() + 3_600_000).toISOString() };
    if (hasManifest) await site.declare({ task: `task-${site.nextAgent}`, ...manifest, ...expiry });
    const session = site.session(`${suite}-${index}`);
    const results = await session.run(steps);
    await session.end();
    const harmed = steps.some((step, at) => injected.includes(step) && results[at]?.reached === true);
    runs.push({ suite, name, results, harmed, asked: results.some(({ state }) => state !== "answered") });
  }
  return runs;
}
