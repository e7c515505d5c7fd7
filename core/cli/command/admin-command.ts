import { type Argument, Option } from "commander";
import type { AdminOperation } from "../../operation/operation.ts";
import type { View } from "../admin-view.ts";
import { adminOption } from "./argument.ts";
import type { LeafCommand } from "./description.ts";

/** A command that only calls one operation of the admin port, and prints the answer. */
interface AdminCommand extends Omit<LeafCommand, "load" | "options"> {
  /** Loads the operation. */
  readonly operation: () => Promise<AdminOperation>;
  /** The path parameters of the operation, in order. */
  readonly arguments?: readonly Argument[];
  /** Query parameters or body members of the operation, by name. */
  readonly options?: readonly Option[];
  /** Names of parameters and members that differ from the option's. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Printed after a refusal of this status; `{id}` is the argument. */
  readonly hints?: Readonly<Record<number, string>>;
  /** Loads what calls the operation and prints its answer. */
  readonly view: () => Promise<View>;
}

/** Describes a command by its operation; adds `--admin` and `--json`. */
export function adminCommand({ operation, parameters = {}, hints = {}, view, ...command }: AdminCommand): LeafCommand {
  const json = new Option("--json", "print JSON; of a list, one line for each item");
  return {
    ...command,
    options: [...(command.options ?? []), adminOption, json],
    load: async () => {
      const [called, run, { readCall }] = await Promise.all([operation(), view(), import("../admin-view.ts")]);
      return (...given: unknown[]) => run(readCall({ operation: called, parameters, hints }, given));
    },
  };
}
