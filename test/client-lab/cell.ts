import { providerKey } from "./lab.ts";
import type { LabRun } from "./run.ts";
import { denial, type Fate, farewell, fates, steps } from "./task.ts";

/** What is shown of a client, by the head of its column: undefined where it works, else what was expected and what came. */
export const cells: Readonly<Record<string, (run: LabRun) => string | undefined>> = {
  allowed: (run) => ranOnce(run, "allowed"),
  blocked: (run) => stopped(run, "blocked", /Blocked by policy: .*Nothing was executed/),
  held: (run) =>
    toldOf(run, "approved later", /Held for review: .*Nothing was executed\. Approval apr_[0-9a-f]{32} is pending/) ??
    expectEqual("calls that reached the server before the review", run.writesWhileHeld, 0),
  "approved, repeated": (run) => ranOnce(run, "repeated"),
  "approved while it waits": (run) => ranOnce(run, "approved at once"),
  denied: (run) =>
    stopped(run, "denied", new RegExp(`A reviewer denied approval .*${denial}.*Do not repeat this call`)),
  "goes on": goesOn,
  elsewhere: ({ hosts, row }) => expectEqual("hosts asked for", hosts.join(), (row.hosts ?? []).join()),
};

/** The witness of a call that ran: the server, which saw it once, and the client, which was told the server's answer. */
function ranOnce(run: LabRun, fate: Fate): string | undefined {
  const { tool, args } = steps[fate];
  const answer = `"name":"${tool}","arguments":${JSON.stringify(args)}`;
  return (
    expectEqual(`calls of \`${tool}\` that reached the server`, countOf(run, fate), 1) ?? toldOf(run, fate, answer)
  );
}

/** The witness of a call that did not run: the server, which never saw it, and the client, which was told why. */
function stopped(run: LabRun, fate: Fate, reason: RegExp): string | undefined {
  const { tool } = steps[fate];
  return (
    expectEqual(`calls of \`${tool}\` that reached the server`, countOf(run, fate), 0) ?? toldOf(run, fate, reason)
  );
}

/** After all that, the client prints what its model said last; the provider saw the gateway's key alone. */
function goesOn({ output, asked, row }: LabRun): string | undefined {
  if (output instanceof Error) return output.message;
  if (!output.includes(farewell)) return `expected the model's last words, got ${output.slice(-500)}`;
  const keys = asked.map(({ headers }) => headers.authorization?.replace("Bearer ", "") ?? headers["x-api-key"]);
  const others = keys.filter((key) => key !== providerKey);
  return (
    expectEqual("requests with another key than the gateway's", others.length, 0) ??
    expectEqual("a model that is asked", asked.length >= fates.length, row.api !== undefined)
  );
}

/** Compares what the model was told; clients may have written it as JSON, once or twice. */
function toldOf({ told, output }: LabRun, fate: Fate, wanted: RegExp | string): string | undefined {
  const got = told[fates.indexOf(fate)]?.replaceAll("\\", "");
  if (got !== undefined && (typeof wanted === "string" ? got.includes(wanted) : wanted.test(got))) return undefined;
  return `expected the model to be told ${wanted}, got ${got ?? `nothing: ${String(output).slice(-1000)}`}`;
}

function countOf({ calls }: LabRun, fate: Fate): number {
  const { tool, args } = steps[fate];
  return calls.filter((call) => call.name === tool && JSON.stringify(call.arguments) === JSON.stringify(args)).length;
}

function expectEqual<T>(what: string, got: T, wanted: T): string | undefined {
  return got === wanted ? undefined : `expected ${String(wanted)} as ${what}, got ${String(got)}`;
}
