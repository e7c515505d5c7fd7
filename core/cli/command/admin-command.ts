import { type Argument, Option } from "commander";
import type { View } from "../admin-view.ts";
import { adminOption } from "./argument.ts";
import type { LeafCommand } from "./description.ts";

/** A command that only calls one operation of the admin port, and prints the answer. */
interface AdminCommand extends Omit<LeafCommand, "load" | "options"> {
  /** Method and path. */
  readonly operation: string;
  /** Arguments by the names of the operation's parameters. */
  readonly arguments?: readonly Argument[];
  readonly options?: readonly Option[];
  /** Names of the operation's parameters and members where they are not the option's own. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Printed after a refusal of this status; `{id}` is the argument. */
  readonly hints?: Readonly<Record<number, string>>;
  /** Loads what calls the operation and prints its answer. */
  readonly view: () => Promise<View>;
}

/** Describes a command from its operation; adds `--admin` and `--json`. */
export function adminCommand({ operation, parameters = {}, hints = {}, view, ...command }: AdminCommand): LeafCommand {
  const json = new Option("--json", "print JSON; of a list, one line for each item");
  return {
    ...command,
    options: [...(command.options ?? []), adminOption, json],
    load: async () => {
      const [run, { readCall }] = await Promise.all([view(), import("../admin-view.ts")]);
      return (...given: unknown[]) => run(readCall({ operation, parameters, hints }, given));
    },
  };
}
