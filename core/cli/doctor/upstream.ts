import { access, constants, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { UpstreamConfig } from "../../config/gateway-config.ts";
import { type Examine, type Finding, fail, ok, warn } from "./finding.ts";
import { examineHost } from "./reach.ts";

/** Whether each MCP server can be started, or connected to. None is started. */
export const examineUpstreams: Examine = async ({ config: { upstreams }, env }) => {
  if (upstreams.length === 0)
    return [warn("there is none: agents are offered nothing", "name an MCP server in `upstreams`")];
  return Promise.all(upstreams.map((upstream) => examineUpstream(upstream, env)));
};

async function examineUpstream(upstream: UpstreamConfig, env: NodeJS.ProcessEnv): Promise<Finding> {
  const { name } = upstream;
  if (upstream.transport !== "stdio") return examineHost(name, upstream.url, fail);
  const { command, cwd } = upstream;
  if (cwd !== undefined && !(await stat(cwd).catch(() => undefined))?.isDirectory()) {
    return fail(`\`${name}\`: its folder \`${cwd}\` is not there`, "make it, or mend its `cwd`");
  }
  const found = await findProgram(command, upstream.env.PATH ?? env.PATH ?? "");
  if (found !== undefined) return ok(`\`${name}\` is started by ${found}`);
  const place = command.includes("/") ? "is no program that this user may run" : "is nowhere in PATH";
  return fail(`\`${name}\`: \`${command}\` ${place}`, "install it, or mend its `command`");
}

async function findProgram(command: string, path: string): Promise<string | undefined> {
  const places = command.includes("/") ? [command] : path.split(delimiter).map((folder) => join(folder, command));
  for (const place of places) if (await isProgram(place)) return place;
  return undefined;
}

async function isProgram(path: string): Promise<boolean> {
  if (!(await stat(path).catch(() => undefined))?.isFile()) return false;
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
