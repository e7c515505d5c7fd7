import { Argument, Command } from "commander";
import { bashScript } from "./completion/bash.ts";
import { fishScript } from "./completion/fish.ts";
import { shapeOf } from "./completion/shape.ts";
import { zshScript } from "./completion/zsh.ts";

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

type Shell = keyof typeof scripts;

/** `gateway completion`: the script is made from the commands themselves, and runs nothing of what is typed. */
export function completionCommand(): Command {
  return new Command("completion")
    .description("print a script that lets a shell complete this command")
    .addArgument(new Argument("<shell>", "which shell").choices(Object.keys(scripts)))
    .option("--json", "print JSON, with the script in it")
    .action((shell: Shell, { json }: { readonly json?: true }, command: Command) => {
      const program = command.parent ?? command;
      const script = scripts[shell](shapeOf(program));
      process.stdout.write(json ? `${JSON.stringify({ shell, script })}\n` : script);
    });
}
