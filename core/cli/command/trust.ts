import { Argument, Option } from "commander";
import { jsonOption, privateHostOption } from "./argument.ts";
import type { CommandGroup } from "./description.ts";

/** Commands about who vouches for signers. */
export const trustCommand: CommandGroup = {
  name: "trust",
  summary: "Keep the trusted root of a trust policy up to date",
  commands: [
    {
      name: "update",
      summary:
        "Fetch a Sigstore trusted root by TUF, verify it and pin it as a file, for `trusted_root` of a trust policy",
      arguments: [new Argument("<file>", "the pinned trusted root; beside it `<file>.tuf.json` has what was seen")],
      options: [
        new Option("--url <url>", "TUF repository (default: the one of the last update, else Sigstore's public one)"),
        new Option("--root <file>", "first update: root.json of the repository (default: Sigstore's public one)"),
        new Option("--check", "write nothing; exit 1 if there is a newer trusted root"),
        privateHostOption,
        jsonOption,
      ],
      examples: `
# Sigstore's public root
gateway trust update trusted-root.json
# the root of services of your own
gateway trust update trusted-root.json --url https://tuf.example --root root.json
# in a build: exit 1 if the pinned root is not the newest
gateway trust update trusted-root.json --check`,
      load: async () => {
        const { requireOptional } = await import("../../config/optional-package.ts");
        requireOptional("trustUpdate", "`gateway trust update`", "CONFIG_INVALID");
        return (await import("../trust-update.ts")).updateTrustedRoot;
      },
    },
  ],
};
