import type { Command } from "commander";
import { asciiJson } from "../action/json.ts";
import type { KillTarget } from "../kill/kill.ts";
import { killOperations } from "../kill/operation.ts";
import { type AdminOptions, callAdmin, type Values } from "./admin-client.ts";
import { print, say } from "./print.ts";
import { targetName } from "./view/session.ts";

interface TargetOptions extends AdminOptions {
  readonly principal?: string;
  readonly tenant?: true;
  readonly gateway?: true;
  readonly json?: true;
}

/** `gateway sessions kill`. */
export async function kill(
  session: string | undefined,
  options: TargetOptions & { readonly note?: string },
  command: Command,
): Promise<void> {
  const target = readTarget(session, options, command);
  const killed = await callAdmin<KillTarget>(options, killOperations.kill, bodyOf(target, { note: options.note }));
  if (options.json) print(asciiJson(killed));
  say(`stopped ${targetName(killed)}`);
}

/** `gateway sessions release`. */
export async function release(
  session: string | undefined,
  options: TargetOptions & { readonly reason: string },
  command: Command,
): Promise<void> {
  const target = readTarget(session, options, command);
  const body = bodyOf(target, { reason: options.reason });
  const released = await callAdmin<KillTarget>(options, killOperations.release, body);
  if (options.json) print(asciiJson(released));
  say(`released ${targetName(released)}`);
}

function bodyOf({ scope, subject }: KillTarget, more: Values): Values {
  return { scope, subject: subject ?? undefined, ...more };
}

/** Reads the one target that the command line names; ends with a usage error where it names none or several. */
function readTarget(session: string | undefined, options: TargetOptions, command: Command): KillTarget {
  const { principal, tenant, gateway } = options;
  const named: KillTarget[] = [
    ...(session === undefined ? [] : [{ scope: "session", subject: session } as const]),
    ...(principal === undefined ? [] : [{ scope: "principal", subject: principal } as const]),
    ...(tenant === undefined ? [] : [{ scope: "tenant", subject: null } as const]),
    ...(gateway === undefined ? [] : [{ scope: "gateway", subject: null } as const]),
  ];
  const [target] = named;
  if (target !== undefined && named.length === 1) return target;
  const got = named.length === 0 ? "none" : named.map(({ scope }) => scope).join(" and ");
  return command.error(`error: expected one of a session, \`--principal\`, \`--tenant\` and \`--gateway\`, got ${got}`);
}
