import { type Finding, fail, ok, warn } from "./finding.ts";

/** Of `engines` in package.json. */
export const oldestNode = "20.19";

/** Options that open a way in, or weaken one. */
const dangerous =
  /^--(?:inspect(?:-brk|-wait|-port)?|debug-port|insecure-http-parser|tls-min-v1\.[01]|tls-cipher-list)$/;

/** What runs the gateway, and what the environment makes of it. */
export function examineNode(version: string, env: NodeJS.ProcessEnv): readonly Finding[] {
  const found = [isOldEnough(version) ? ok(`Node ${version}`) : tooOld(version), ...optionsIn(env.NODE_OPTIONS ?? "")];
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === "0") {
    found.push(fail("NODE_TLS_REJECT_UNAUTHORIZED is 0: no certificate is checked", "take it out of the environment"));
  }
  return found;
}

function isOldEnough(version: string): boolean {
  const [[major = 0, minor = 0], [leastMajor = 0, leastMinor = 0]] = [version, oldestNode].map((text) =>
    text.split(".").map(Number),
  ) as [number[], number[]];
  return major > leastMajor || (major === leastMajor && minor >= leastMinor);
}

function tooOld(version: string): Finding {
  return fail(`Node ${version}, expected ${oldestNode} or later`, "install a newer Node");
}

/** Names of options alone: a value may be anything. */
function optionsIn(text: string): readonly Finding[] {
  const names = text.match(/(?<=^|\s)--?[a-z][a-z0-9.-]*/g) ?? [];
  if (names.length === 0) return [];
  const worst = names.filter((name) => dangerous.test(name));
  const mend = "take NODE_OPTIONS out of the environment";
  if (worst.length > 0) return [fail(`NODE_OPTIONS weakens the process: \`${worst.join(" ")}\``, mend)];
  return [warn(`NODE_OPTIONS changes the process: \`${names.join(" ")}\``, mend)];
}
