import { Command, InvalidArgumentError } from "commander";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import { VerifyingKey } from "../action/signing-key.ts";
import { escapeHidden } from "../action/visible-text.ts";
import { headerOf, maxToken, readToken, ticketId } from "../ticket/claims.ts";
import type { IssuedTicket, TicketView } from "../ticket/ticket-issuer.ts";
import type { TicketKey } from "../ticket/ticket-keys.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { askWhole, parseCount, printList } from "./list.ts";
import { print, say } from "./print.ts";

interface Output extends AdminOptions {
  readonly json?: true;
}

interface IssueOptions extends Output {
  readonly principal: string;
  readonly tool: readonly string[];
  readonly target: readonly string[];
  readonly capability: readonly string[];
  readonly maxUses?: number;
  readonly ttl?: number;
}

interface RevokeOptions extends Output {
  readonly reason: string;
}

const path = "/admin/v1/tickets";

/** `gateway tickets`: what principals may do ahead of time, where a rule asks for a ticket. */
export function ticketsCommand(): Command {
  const tickets = new Command("tickets").description("capability tickets: what a principal may do ahead of time");
  asking(tickets, "issue", "issue a ticket, and print its token: it is told once")
    .requiredOption("--principal <id>", "who may use it, as evidence names it: `principal-v1-…`")
    .requiredOption("--tool <names...>", "tools, or globs of them")
    .requiredOption("--target <names...>", "upstreams, or globs of them")
    .requiredOption("--capability <words...>", "capabilities, like `write`")
    .option("--max-uses <count>", "actions it lets pass; 1 unless told", parseCount)
    .option("--ttl <seconds>", "how long it lasts; as the configuration says unless told", parseCount)
    .action(issue);
  asking(tickets, "list", "print the tickets of your tenant, one a line").action(list);
  asking(tickets, "revoke", "let a ticket permit nothing any more")
    .argument("<ticket-id>", "as `gateway tickets list` prints it", parseTicketId)
    .requiredOption("--reason <text>", "why; goes on record")
    .action(revoke);
  asking(tickets, "keys", "print the public keys that your tenant's tickets are signed with").action(listKeys);
  tickets
    .command("verify")
    .description("verify the signature of the token on stdin, and print what it says; nothing is asked of a gateway")
    .requiredOption("--key <base64>", "public key, as `gateway tickets keys` prints it", parseKey)
    .option("--json", "print JSON, as it does in any case")
    .action(verify);
  return tickets;
}

function asking(parent: Command, name: string, what: string): Command {
  return parent.command(name).description(what).option("--json", "print JSON").addOption(adminOption());
}

async function issue(options: IssueOptions): Promise<void> {
  const { principal, tool: tools, target: targets, capability: capabilities, maxUses, ttl } = options;
  const scope = { principal, tools, targets, capabilities };
  const bounds = {
    ...(maxUses === undefined ? {} : { max_uses: maxUses }),
    ...(ttl === undefined ? {} : { ttl_seconds: ttl }),
  };
  const issued = await askJson<IssuedTicket>(options, path, "POST", { ...scope, ...bounds });
  if (options.json) return print(asciiJson(issued));
  say(`issued ${describe(issued.ticket)}`);
  print(issued.token);
}

async function list(options: Output): Promise<void> {
  await printList(options, path, { json: options.json, describe });
}

async function revoke(id: string, options: RevokeOptions): Promise<void> {
  const message = { reason: options.reason };
  const { ticket } = await askJson<{ readonly ticket: TicketView }>(options, `${path}/${id}`, "DELETE", message);
  if (options.json) print(asciiJson(ticket));
  else say(`revoked ${describe(ticket)}`);
}

async function listKeys(options: Output): Promise<void> {
  for (const key of await askWhole<TicketKey>(options, "/admin/v1/ticket-keys"))
    print(options.json ? asciiJson(key) : `${key.public_key}  ${key.created_at}`);
}

/** The token is a secret: it comes on stdin, and is not repeated. */
async function verify({ key }: { readonly key: VerifyingKey }): Promise<void> {
  const token = (await readStdin()).trim();
  const find = (header: string): { key: VerifyingKey; owner: null } | undefined =>
    header === headerOf(key.id) ? { key, owner: null } : undefined;
  const read = readToken(token, find, key);
  if (read === undefined) throw new GatewayError("INVALID_PARAMS", "the token is not signed by this key, or is none");
  print(JSON.stringify({ ...read.claims, nonce: undefined }));
}

async function readStdin(): Promise<string> {
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length > maxToken + 2) break;
  }
  return text;
}

function describe(ticket: TicketView): string {
  const { id, state, principal, tools, targets, capabilities, uses, max_uses: most, expires_at: until } = ticket;
  const scope = `${capabilities.join(",")} ${tools.join(",")} on ${targets.join(",")}`;
  return `${id}  ${state}  ${uses}/${most} used  until ${until}  ${principal}  ${escapeHidden(scope)}`;
}

function parseTicketId(text: string): string {
  if (ticketId.test(text)) return text;
  throw new InvalidArgumentError("expected a ticket's id, like `tkt_…`");
}

function parseKey(text: string): VerifyingKey {
  const key = VerifyingKey.parse(text);
  if (key !== undefined) return key;
  throw new InvalidArgumentError("expected the base64 of the 32 bytes of an Ed25519 public key");
}
