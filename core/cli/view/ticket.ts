import { escapeHidden } from "../../action/visible-text.ts";
import type { IssuedTicket, TicketView } from "../../ticket/ticket-issuer.ts";
import type { TicketKey } from "../../ticket/ticket-keys.ts";
import { answerView, listView, tableView, type View } from "../admin-view.ts";

export const ticketList: View = listView<TicketView>([
  { title: "ticket", of: ({ id }) => id, isWhole: true },
  { title: "state", of: ({ state }) => state },
  { title: "uses", of: ({ uses, max_uses: max }) => `${uses}/${max}` },
  { title: "until", of: ({ expires_at: until }) => until, isWhole: true },
  { title: "principal", of: ({ principal }) => principal, isWhole: true },
  { title: "for", of: scopeOf },
]);

export const ticketKeyList: View = tableView<TicketKey>([
  { title: "public key", of: (key) => key.public_key, isWhole: true },
  { title: "created", of: (key) => key.created_at, isWhole: true },
]);

export const issuedTicket: View = answerView<IssuedTicket>(({ ticket, token }, { json }) => {
  return { text: token, notes: json ? [] : [`issued ${ticketLine(ticket)}`] };
});

export const revokedTicket: View = answerView<{ readonly ticket: TicketView }>(({ ticket }, { json }) => {
  return { json: ticket, notes: json ? [] : [`revoked ${ticketLine(ticket)}`] };
});

function ticketLine(ticket: TicketView): string {
  const { id, state, principal, uses, max_uses: max, expires_at: until } = ticket;
  return `${id}  ${state}  ${uses}/${max} used  until ${until}  ${principal}  ${escapeHidden(scopeOf(ticket))}`;
}

function scopeOf({ tools, targets, capabilities }: TicketView): string {
  return `${capabilities.join(",")} ${tools.join(",")} on ${targets.join(",")}`;
}
