import { escapeHidden } from "../../action/visible-text.ts";
import type { IssuedTicket, TicketView } from "../../ticket/ticket-issuer.ts";
import type { TicketKey } from "../../ticket/ticket-keys.ts";
import { answerView, listView, type View, wholeListView } from "../admin-view.ts";

export const ticketList: View = listView<TicketView>(ticketLine);

export const ticketKeyList: View = wholeListView<TicketKey>((key) => `${key.public_key}  ${key.created_at}`);

export const issuedTicket: View = answerView<IssuedTicket>(({ ticket, token }, { json }) => {
  return { text: token, notes: json ? [] : [`issued ${ticketLine(ticket)}`] };
});

export const revokedTicket: View = answerView<{ readonly ticket: TicketView }>(({ ticket }, { json }) => {
  return { json: ticket, notes: json ? [] : [`revoked ${ticketLine(ticket)}`] };
});

function ticketLine(ticket: TicketView): string {
  const { id, state, principal, tools, targets, capabilities, uses, max_uses: max, expires_at: until } = ticket;
  const scope = `${capabilities.join(",")} ${tools.join(",")} on ${targets.join(",")}`;
  return `${id}  ${state}  ${uses}/${max} used  until ${until}  ${principal}  ${escapeHidden(scope)}`;
}
