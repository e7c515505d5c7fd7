import { type Command, Option } from "commander";
import { parseFirstPort } from "./port-option.ts";

/** `--data` and `--port`: where local mode is. Neither stands beside `--config`. */
export function takeLocalOptions(command: Command): Command {
  return command
    .addOption(
      new Option("-d, --data <folder>", "local mode: data folder (default: data)")
        .env("GATEWAY_DATA_DIR")
        .conflicts("config"),
    )
    .addOption(
      new Option("-p, --port <number>", "local mode: first of three ports in a row (default: 8080)")
        .conflicts("config")
        .argParser(parseFirstPort),
    );
}
