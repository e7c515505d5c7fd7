import { Command, InvalidArgumentError } from "commander";
import type { DeadLetterPage, DeadLetterView } from "../notify/dead-letter.ts";
import { type AdminOptions, adminOption, askAdmin } from "./admin-client.ts";

interface ListOptions extends AdminOptions {
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
    .action(redeliver);
  return webhooks;
}

async function listDeadLetters(options: ListOptions): Promise<void> {
  for (let query: string | null = "limit=500"; query !== null; ) {
    const { items, next }: DeadLetterPage = JSON.parse((await askAdmin(options, `${path}?${query}`)).toString("utf8"));
    for (const letter of items) process.stdout.write(options.json ? `${JSON.stringify(letter)}\n` : describe(letter));
    query = next === null ? null : `limit=500&cursor=${next}`;
  }
}

function describe({ id, given_up_at: givenUpAt, webhook, type, reason, attempts, status }: DeadLetterView): string {
  const last = status === null ? "no answer" : `status ${status}`;
  return `${id}  ${givenUpAt}  ${webhook}  ${type}  ${reason} after ${attempts} attempts, last ${last}\n`;
}

async function redeliver(id: string, options: AdminOptions): Promise<void> {
  await askAdmin(options, `${path}/${id}/redeliver`, "POST");
  process.stderr.write(`gateway: ${id} is on its way again\n`);
}

function parseId(text: string): string {
  if (/^msg_[0-9a-f-]{36}$/.test(text)) return text;
  throw new InvalidArgumentError("expected a webhook's message id, like `msg_…`");
}
