import { Command, InvalidArgumentError } from "commander";
import { asciiJson } from "../action/json.ts";
import type { DeadLetterView } from "../notify/dead-letter.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { printList } from "./list.ts";
import { print, say } from "./print.ts";

interface Output extends AdminOptions {
  readonly json?: true;
}

const path = "/admin/v1/webhooks/dead-letters";

/** `gateway webhooks`. */
export function webhookCommand(): Command {
  const webhooks = new Command("webhooks").description("who is told of approvals");
  webhooks
    .command("dead-letters")
    .description("list what webhooks were never told, the latest first")
    .addOption(adminOption())
    .option("--json", "print JSON, one line each, with what would have been told")
    .action(listDeadLetters);
  webhooks
    .command("redeliver")
    .description("have a dead letter delivered again")
    .argument("<id>", "as `gateway webhooks dead-letters` lists it", parseId)
    .addOption(adminOption())
    .option("--json", "print JSON")
    .action(redeliver);
  return webhooks;
}

async function listDeadLetters(options: Output): Promise<void> {
  await printList(options, path, { json: options.json, describe });
}

function describe({ id, given_up_at: givenUpAt, webhook, type, reason, attempts, status }: DeadLetterView): string {
  const last = status === null ? "no answer" : `status ${status}`;
  return `${id}  ${givenUpAt}  ${webhook}  ${type}  ${reason} after ${attempts} attempts, last ${last}`;
}

async function redeliver(id: string, options: Output): Promise<void> {
  const answer = await askJson(options, `${path}/${id}/redeliver`, "POST");
  if (options.json) print(asciiJson(answer));
  say(`${id} is on its way again`);
}

function parseId(text: string): string {
  if (/^msg_[0-9a-f-]{36}$/.test(text)) return text;
  throw new InvalidArgumentError("expected a webhook's message id, like `msg_…`");
}
