export const ticketsSchema = {
  type: "object",
  description:
    "Capability tickets: what operators permit a principal to do ahead of time, where a rule says `require_ticket`.",
  fields: {
    default_ttl_seconds: {
      type: "integer",
      min: 1,
      max: 604_800,
      default: 300,
      description: "How long a ticket lasts unless whoever issues it says otherwise; at most `max_ttl_seconds`.",
    },
    max_ttl_seconds: {
      type: "integer",
      min: 1,
      max: 604_800,
      default: 3_600,
      description: "The longest that a ticket may last.",
    },
    max_live: {
      type: "integer",
      min: 1,
      max: 100_000,
      default: 1_000,
      description: "Tickets of one tenant that have not expired. One more is refused.",
    },
    allow_self_issue: {
      type: "boolean",
      default: false,
      description: "Whether an operator may issue a ticket to their own principal.",
    },
  },
} as const;
