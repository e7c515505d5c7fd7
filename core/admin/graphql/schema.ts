import { buildSchema, type GraphQLSchema } from "graphql";

/** The GraphQL schema: read-only, and of the caller's tenant only. */
const schemaText = `
"Any JSON value."
scalar JSON

type Query {
  "The latest decisions since the start, newest first; at most 200 are kept."
  decisions(limit: Int = 50): [Decision!]!
  "Approvals of one state: pending and approved ones oldest first, final ones newest first."
  approvals(state: ApprovalState = pending, limit: Int = 50, cursor: String): ApprovalPage!
  approval(id: ID!): Approval!
  "Sessions by highest risk, or by latest action."
  sessions(sort: SessionSort = risk, limit: Int = 50, cursor: String): SessionPage!
  session(id: ID!): SessionDetail!
  evidence: Evidence!
  "Recorded sessions, newest first."
  evidenceSessions(limit: Int = 50, cursor: String): EvidenceSessionPage!
  "The records of one session, in order."
  records(session: ID!, limit: Int = 50, cursor: String): RecordPage!
  "Use of models; days are like 2026-11-22, both included."
  usage(from: String!, to: String!, by: [UsageDimension!] = [day, principal, provider, model], limit: Int = 50, cursor: String): UsagePage!
  policies: [Policy!]!
  plugins: [Policy!]!
}

enum ApprovalState { pending approved denied expired consumed }
enum SessionSort { risk last }
enum UsageDimension { day principal provider model }

type Decision {
  time: String!
  id: ID!
  action: ID!
  decision: String!
  dispatched: Boolean!
  rules: [String!]!
  by_default: Boolean!
  risk: Int!
  principal: String!
  session: ID!
  label: String
  task: String
  protocol: String!
  tool: String!
  target: String!
  capability: String!
  duration_us: Int!
}

type ApprovalPage { items: [Approval!]! next: String }

type Approval {
  id: ID!
  state: ApprovalState!
  scope: String!
  required: Int!
  requested_at: String!
  expires_at: String!
  reviewed_at: String
  reviewer: String
  comment: String
  reason: String
  action: ApprovalAction!
  evaluation: ApprovalEvaluation!
}

type ApprovalAction { tool: String! target: String! capability: String! protocol: String! }
type ApprovalEvaluation { risk: Int! rules: [String!]! }

type SessionPage { items: [Session!]! next: String }

"A session whose state is damaged has an id and a state only."
type Session {
  session: ID!
  state: String!
  principal: String
  risk: Int
  actions: Int
  reviews: Int
  tools: Int
  taints: [String!]
  last_at: String
}

type SessionDetail {
  session: ID!
  state: String!
  principal: String!
  risk: Int!
  actions: Int!
  reviews: Int!
  tools: Int!
  taints: [Taint!]!
  history: [PastAction!]!
  last_at: String!
}

type Taint { name: String! target: String! tool: String! action: ID! at: String! }

type PastAction {
  at: String!
  protocol: String!
  tool: String!
  target: String!
  capability: String!
  decision: String!
  dispatched: Boolean!
}

"The head of the tenant's chain; -1 before its first record."
type Evidence { writable: Boolean! state: String! seq: Int! }

type EvidenceSessionPage { items: [EvidenceSession!]! next: String }

type EvidenceSession {
  id: ID!
  label: String
  transport: String!
  principal: String!
  started_at: String!
  last_at: String!
  first_seq: Int!
  last_seq: Int!
  records: Int!
  allow: Int!
  review: Int!
  block: Int!
}

type RecordPage { items: [Record!]! next: String }

"A record of evidence: its main members, and the whole as it was hashed."
type Record { seq: Int! kind: String! time: String! id: ID! whole: JSON! }

type UsagePage { from: String! to: String! totals: UsageTotals! items: [UsageItem!]! next: String }
type UsageTotals { requests: Int! input_tokens: Float! output_tokens: Float! cached_input_tokens: Float! }

type UsageItem {
  day: String
  principal: String
  key_id: String
  provider: String
  model: String
  requests: Int!
  input_tokens: Float!
  output_tokens: Float!
  cached_input_tokens: Float!
}

type Policy { kind: String! name: String! version: String! digest: String! signer: String mode: String! }
`;

export const schema: GraphQLSchema = buildSchema(schemaText);
