import type { Command } from "commander";
import { formats } from "../config/format.ts";

/** Ends with a usage error where a value of `--private-host` is no host. */
export function checkPrivateHosts(hosts: readonly string[], command: Command): void {
  const { test, expected } = formats.private_host;
  const other = hosts.find((host) => !test(host));
  if (other !== undefined)
    command.error(`error: option '--private-host <host>': expected ${expected}, got \`${other}\``);
}
