import { connect as connectTcp, isIP } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Finding, ok } from "./finding.ts";

const deadlineMs = 3_000;

/** Words for what the system says; the code itself for others. */
const reasons: Readonly<Record<string, string>> = {
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the host's name cannot be looked up now",
  ECONNREFUSED: "nobody listens there",
  EHOSTUNREACH: "no way there",
  ENETUNREACH: "no way there",
  ECONNRESET: "it hangs up",
};

/** Why the host of a URL cannot be connected to, its certificate included; undefined where it can. Sends nothing. */
export function reachProblem(url: string): Promise<string | undefined> {
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const isTls = protocol === "https:";
  const place = { host, port: port === "" ? (isTls ? 443 : 80) : Number(port) };
  return new Promise((resolve) => {
    const socket = isTls
      ? connectTls({ ...place, ...(isIP(host) === 0 ? { servername: host } : {}) })
      : connectTcp(place);
    const end = (problem: string | undefined): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(problem);
    };
    const timer = setTimeout(() => end(`no answer within ${deadlineMs / 1_000} s`), deadlineMs);
    socket.once(isTls ? "secureConnect" : "connect", () => end(undefined));
    socket.once("error", ({ code, message }: NodeJS.ErrnoException) => end(reasons[code ?? ""] ?? code ?? message));
  });
}

/** Whether somebody is there at a URL; `doubt` makes the finding where nobody is. Of the URL it tells the host alone. */
export async function examineHost(
  name: string,
  url: string,
  doubt: (text: string, mend: string) => Finding,
): Promise<Finding> {
  const { host } = new URL(url);
  const problem = await reachProblem(url);
  if (problem === undefined) return ok(`\`${name}\` is there, at ${host}`);
  return doubt(`\`${name}\` at ${host} cannot be reached: ${problem}`, "start it, or mend its URL or the way there");
}
