import { parseRequirements, type Requirement } from "./support/requirement-table.ts";

/**
 * What the specification asks, one row for each sentence or table row that a test can hold.
 *
 * A row is `id | issue that meets it | met, part or open | sentence`; a heading is the section of the specification.
 * A test names what it shows in its title, in brackets: `it("gives the default decision [R1.1-3]")`.
 * `part` is a row that several issues share, met for what there is so far.
 * `test/check/requirements.test.ts` fails where a met row has no test, or a test names an open or unknown row.
 */
export const requirements: readonly Requirement[] = parseRequirements(`
## 1.1 What the service does
R1.1-1  | 2 | met  | Actions that an agent attempts are intercepted, evaluated and controlled at the protocol boundary.
R1.1-2  | 2 | met  | The protocol types are MCP, HTTP, shell, SQL and Git.
R1.1-3  | 2 | met  | Every evaluated action gets one of three decisions: allow, review, block.
R1.1-4  | 2 | met  | The agent is an untrusted principal: nothing it sends grants it authority.
R1.1-5  | 2 | met  | Upstream tools enforce their own authorization: their refusal reaches the agent.
R1.1-6  | 5 | met  | In strict mode unsigned policy packs are rejected.
R1.1-7  | 5 | met  | In strict mode unsigned plugins are rejected.
R1.1-8  | 6 | met  | Model requests are governed through a chat-completions-compatible API.
R1.1-9  | 6 | met  | Model requests are governed through a messages-style API.
R1.1-10 | 6 | met  | Input policy runs before the provider call.
R1.1-11 | 6 | met  | Output policy and evidence handling run before the response completes.
R1.1-12 | 2 | met  | The MCP gateway checks tools/list.
R1.1-13 | 2 | met  | The MCP gateway checks tools/call.
R1.1-14 | 2 | met  | It checks tool name, target, arguments, capability and session context.
R1.1-15 | 2 | met  | A tool policy engine decides allow, review or block at runtime.
R1.1-16 | 6 | met  | Input and output policy are active at runtime.
R1.1-17 | 7 | met  | Behavioral session analysis with a kill switch is active at runtime.
R1.1-18 | 2 | met  | Role-based access control is active at runtime.
R1.1-19 | 4 | met  | The approval queue is active at runtime.
R1.1-20 | 3 | met  | The signed evidence chain is active at runtime.
R1.1-21 | 8 | met  | Execution-gate sandboxes and the identity hierarchy are not wired into the request path.
R1.1-22 | 2 | met  | Upstream credentials are not issued at runtime.
R1.1-23 | 6 | met  | Only traffic routed through a supported integration enters the policy engine.
R1.1-24 | 6 | met  | Default local mode uses a mock provider.
R1.1-25 | 2 | met  | Default local mode uses YAML policies.
R1.1-26 | 6 | met  | Default local mode uses in-memory rate limiting.
R1.1-27 | 2 | met  | Default local mode keeps a local audit and evidence chain.
R1.1-28 | 2 | met  | Default local mode serves metrics on the admin port.
R1.1-29 | 2 | met  | Providers, tracing, caches, external databases and external policy engines are optional.
R1.1-30 | 8 | met  | Audit and usage records may go to an external relational database.
R1.1-31 | 2 | met  | Evidence state uses a local embedded database when state.enabled is true.
R1.1-32 | 4 | met  | Approval state uses a local embedded database when state.enabled is true.

## 1.2 Ports
R1.2-1  | 6 | met  | Port 8080 serves the chat-completions-compatible API and the messages API.
R1.2-2  | 2 | met  | Port 8080 serves MCP at /mcp.
R1.2-3  | 4 | met  | Port 8080 serves MCP at /sse.
R1.2-4  | 8 | met  | Port 8080 serves the WebSocket /v1/ws.
R1.2-5  | 2 | met  | Port 8081 serves the admin API below /admin/v1/.
R1.2-6  | 2 | met  | Port 8081 serves /health and /metrics.
R1.2-7  | 4 | met  | Port 8081 serves approvals.
R1.2-8  | 2 | met  | Port 8081 serves evidence.
R1.2-9  | 2 | met  | Port 8082 is a scrape target for metrics.
R1.2-10 | 8 | met  | Port 8082 serves the dashboard and its JSON.

## 2.1 Tenant, key, role, principal
R2.1-1  | 2 | met  | Every API key is configured with a tenant.
R2.1-2  | 4 | met  | Approval and history data is scoped to the caller's tenant.
R2.1-3  | 2 | met  | Evidence data is scoped to the caller's tenant.
R2.1-4  | 3 | met  | Verification and report data is scoped to the caller's tenant.
R2.1-5  | 2 | met  | A key is presented in X-API-Key or as Authorization: Bearer.
R2.1-6  | 2 | met  | A key carries a configured role.
R2.1-7  | 2 | met  | A role is one of admin, operator, viewer.
R2.1-8  | 2 | met  | A principal is a stable identifier derived from tenant and key.
R2.1-9  | 2 | met  | The raw key is not stored in evidence.
R2.1-10 | 2 | met  | Rotating a key creates a new principal.
R2.1-11 | 2 | met  | A session label is optional and sent in X-Gateway-Session-ID on direct requests.
R2.1-12 | 2 | met  | A session label is scoped to tenant and principal.
R2.1-13 | 2 | met  | An absent label selects the principal's default HTTP session.
R2.1-14 | 4 | met  | There is one session scope per SSE connection, identified by the id in /mcp/session/{id}.
R2.1-15 | 4 | met  | An SSE session scope is owned by the authenticating principal.

## 2.2 Approval record
R2.2-1  | 4 | met  | An approval is bound to tenant, principal, session, task, protocol, tool, target, capability and arguments.
R2.2-2  | 2 | met  | A change in any one input yields a different fingerprint.
R2.2-3  | 4 | met  | A changed fingerprint requires a new approval.
R2.2-4  | 4 | met  | The record holds a reviewer identity, taken from the authenticated principal only.
R2.2-5  | 4 | met  | Approvals are single-use.

## 2.3 Evidence record and chain
R2.3-1  | 2 | met  | The chain is append-only; each record includes the SHA-256 hash of the previous record.
R2.3-2  | 2 | met  | Each record carries a tenant.
R2.3-3  | 3 | met  | Records without a tenant, or a chain of several tenants, are unavailable through tenant-scoped APIs.
R2.3-4  | 3 | met  | Evidence is signed; integrity checks fail closed on tampering.
R2.3-5  | 3 | met  | The session manifest holds ordered action records per session.
R2.3-6  | 3 | met  | The export bundle contains integrity metadata.
R2.3-7  | 5 | met  | Plugin provenance metadata is tracked in evidence.

## 2.4 Action envelope
R2.4-1  | 2 | met  | All agent actions are normalized into action envelopes before evaluation.

## 2.5 Task manifest
R2.5-1  | 7 | met  | A task manifest declares expected tools, expected resources, write domains and a maximum action count.
R2.5-2  | 7 | met  | The manifest is used for drift detection.
R2.5-3  | 7 | met  | The session risk score accumulates as actions deviate.

## 2.6 Capability ticket
R2.6-1  | 7 | met  | A capability ticket includes a nonce and a TTL.

## 2.7 Provider configuration
R2.7-1  | 6 | met  | A provider has name, type, enabled, base_url, api_key_env and models.
R2.7-2  | 6 | met  | Enabling a provider alone does not change routing.
R2.7-3  | 6 | met  | A route must list the provider for it to be used.
R2.7-4  | 6 | met  | Fallback occurs only when configured in that route.

## 2.8 Other configuration keys
R2.8-1  | 2 | met  | mcp_gateway.require_auth: when true, MCP requests require authentication.
R2.8-2  | 8 | met  | resilience.enabled enables the snapshot backup endpoints.
R2.8-3  | 8 | met  | resilience.backup_dir says where local JSON snapshots are stored.
R2.8-4  | 2 | met  | state.enabled enables local persistent state for signed evidence.
R2.8-5  | 4 | met  | state.enabled enables local persistent state for approvals.

## 2.9 Chat request
R2.9-1  | 6 | met  | A chat request needs a model and messages with role and content.
R2.9-2  | 6 | met  | A mock model name exists for the mock provider.
R2.9-3  | 6 | met  | The response carries choices whose first element holds a message with content.

## 3.1 Approval states
R3.1-1  | 4 | met  | An authenticated tool call evaluated as review becomes pending in the caller's tenant.
R3.1-2  | 4 | met  | An operator or admin of the same tenant approves a pending entry; the reviewer is recorded.
R3.1-3  | 4 | met  | An operator or admin of the same tenant denies a pending entry; the reviewer is recorded.
R3.1-4  | 4 | met  | A retry of the same action with the same key and session consumes the approval.
R3.1-5  | 4 | met  | The action executes at most once even with concurrent retries.
R3.1-6  | 4 | met  | An approval whose upstream attempt fails is still consumed; a new approval is required.
R3.1-7  | 4 | met  | At startup, pending and approved entries without the trusted identity binding expire, persisted.
R3.1-8  | 4 | met  | At startup, consumed state is retained.
R3.1-9  | 4 | met  | A bound HTTP approval survives a restart with the same configuration, key and label.

## 3.2 Rules
R3.2-1  | 4 | met  | Viewer keys cannot approve or deny.
R3.2-2  | 4 | met  | Keys of another tenant, admin keys included, cannot review or read this tenant's approvals.
R3.2-3  | 4 | met  | A JSON reviewer field in a request grants no authority.
R3.2-4  | 4 | met  | An SSE approval is valid only on the live connection where it was requested.
R3.2-5  | 4 | met  | Reconnecting creates a new scope and needs fresh approval.
R3.2-6  | 4 | met  | HTTP and SSE approvals do not transfer between transports.
R3.2-7  | 4 | met  | Approvals expire, so that stale ones cannot be used.
R3.2-8  | 4 | met  | Approval scope is this task or exactly this action.
R3.2-9  | 7 | met  | The risk score accumulates as actions drift from the task manifest.
R3.2-10 | 7 | met  | The kill switch triggers when the score exceeds a threshold.
R3.2-11 | 7 | met  | The kill switch blocks sessions that generate excessive review requests.
R3.2-12 | 7 | met  | Shadow mode exists for the gradual rollout of drift enforcement.
R3.2-13 | 2 | met  | When policy evaluation errors, the action is blocked.

## 4.1 Gateway endpoints
R4.1-1  | 2 | met  | POST /mcp takes a JSON-RPC message and answers a JSON-RPC response.
R4.1-2  | 2 | met  | POST /mcp takes the optional header X-Gateway-Session-ID.
R4.1-3  | 4 | met  | GET /sse answers an SSE stream that announces /mcp/session/{id}.
R4.1-4  | 4 | met  | GET /sse always requires authentication.
R4.1-5  | 4 | met  | POST /mcp/session/{id} takes a JSON-RPC message of the connection's principal only.
R4.1-6  | 2 | met  | GET and HEAD /health are public.
R4.1-7  | 2 | met  | POST /health cannot execute tools.
R4.1-8  | 6 | met  | POST /v1/chat/completions answers a completion and requires the key of a configured tenant.
R4.1-9  | 6 | met  | POST /v1/chat/completions supports streaming.
R4.1-10 | 6 | met  | POST /v1/messages takes and answers messages-style JSON.
R4.1-11 | 6 | met  | POST /v1/messages/count_tokens answers a token count.
R4.1-12 | 8 | met  | /v1/ws is a WebSocket for live charts and eval hooks.
R4.1-13 | 2 | met  | Other paths cannot dispatch tool calls.
R4.1-14 | 6 | met  | Tool passthrough on the messages route is optional and disabled by default.

## 4.2 Admin endpoints
R4.2-1  | 2 | met  | GET /health answers on the admin port.
R4.2-2  | 2 | met  | GET /metrics answers text with gateway_requests_total and gateway_request_duration_seconds.
R4.2-3  | 6 | met  | GET /admin/v1/usage answers usage statistics.
R4.2-4  | 6 | met  | GET /admin/v1/providers lists the configured providers.
R4.2-5  | 3 | met  | POST /admin/v1/audit/verify verifies the audit chain.
R4.2-6  | 2 | met  | GET /admin/v1/evidence/sessions lists evidence sessions of the caller's tenant.
R4.2-7  | 8 | met  | POST /admin/v1/resilience/backup creates a local JSON snapshot, only when resilience is enabled.
R4.2-8  | 8 | met  | GET /admin/v1/resilience/backups lists snapshots, only when resilience is enabled.
R4.2-9  | 4 | met  | Approval lists, history, single approvals, approve and deny require authentication.
R4.2-10 | 3 | met  | Evidence export, verification and reports require authentication.
R4.2-11 | 4 | met  | Approval endpoints return only the caller's tenant data.
R4.2-12 | 3 | met  | Evidence endpoints return only the caller's tenant data.
R4.2-13 | 8 | met  | A GraphQL interface exists.
R4.2-14 | 8 | met  | The dashboard shows an authentication notice for protected views.
R4.2-15 | 8 | met  | The dashboard neither collects nor persists reviewer keys.

## 4.3 Command line
R4.3-1  | 8 | met  | The CLI reads the key from GATEWAY_API_KEY for protected admin commands.
R4.3-2  | 3 | met  | evidence export <session-id> --file <path> writes an export.
R4.3-3  | 3 | met  | evidence report <session-id> --file <path> writes a report.
R4.3-4  | 3 | met  | evidence verify verifies evidence.
R4.3-5  | 8 | met  | simulate evaluates without executing.
R4.3-6  | 8 | met  | test-action requires role operator and uses the authenticated identity.
R4.3-7  | 8 | met  | test-action is a policy diagnostic: it executes nothing upstream.

## 5 Authentication
R5-1    | 2 | met  | The credential is X-API-Key or Authorization: Bearer.
R5-2    | 2 | met  | With require_auth true, all MCP requests require authentication.
R5-3    | 2 | met  | Reviewed tool calls require authentication even when require_auth is false.
R5-4    | 2 | met  | With require_auth false, unauthenticated direct calls still follow allow and block policy.
R5-5    | 2 | met  | There are no isolated anonymous identities.
R5-6    | 4 | met  | /sse always requires authentication.
R5-7    | 2 | met  | /health is public for GET and HEAD.
R5-8    | 6 | met  | Chat requests need a configured tenant key.
R5-9    | 4 | met  | Admin and operator approve and deny within their own tenant.
R5-10   | 4 | met  | A viewer cannot review.
R5-11   | 2 | met  | Admin does not grant cross-tenant access.
R5-12   | 8 | met  | test-action requires operator.
R5-13   | 4 | met  | Retries of an approved action must use the same key and the same session label.
R5-14   | 2 | met  | Clients that share one key and label share identity.
R5-15   | 4 | met  | After key rotation earlier approvals do not carry over.
R5-16   | 2 | met  | The admin API runs on a separate port from the gateway.
R5-17   | 3 | met  | All admin actions are audited in the evidence chain.
R5-18   | 3 | met  | Break-glass use is audited and requires a postmortem.

## 6 Events
R6-1    | 2 | met  | Evidence records are written for decisions.
R6-2    | 4 | met  | Evidence records are written for approvals.
R6-3    | 3 | met  | Evidence records are written for admin actions.
R6-4    | 2 | met  | MCP responses are streamed over SSE.

## 7 Errors
R7-1    | 6 | met  | An unsupported provider-version is rejected with a JSON error in the messages format.
R7-2    | 6 | met  | A missing provider-version defaults to 2023-06-01.
R7-3    | 2 | met  | An unauthenticated call that is reviewed is rejected because authentication is required.
R7-4    | 4 | met  | An unauthenticated /sse request is rejected because authentication is required.
R7-5    | 4 | met  | A viewer key's attempt to review is not permitted.
R7-6    | 4 | met  | A cross-tenant read or review is not permitted.
R7-7    | 4 | met  | A reused approval or a changed fingerprint: not executed; a new approval is needed.
R7-8    | 2 | met  | POST to /health cannot execute tools.
R7-9    | 3 | met  | Tampered signed evidence fails closed.
R7-10   | 4 | met  | A failed approval integrity check fails closed.
R7-11   | 2 | met  | A policy evaluation error blocks the action.

## 8 Limits
R8-1    | 4 | met  | Each approval is single-use; concurrent retries execute the action at most once.
R8-2    | 7 | met  | The kill switch triggers when the risk score exceeds a threshold.
R8-3    | 7 | met  | The task manifest's maximum action count holds.
R8-4    | 7 | met  | Capability tickets carry a TTL.
R8-5    | 4 | met  | Approvals carry an expiry.
R8-6    | 8 | met  | Behind a reverse proxy /sse and /v1/ws work unbuffered with read timeouts of at least one hour.

## 9 Versioning
R9-1    | 2 | met  | Admin paths begin with /admin/v1/.
R9-2    | 6 | met  | Gateway API paths begin with /v1/.
R9-3    | 6 | met  | An absent provider-version means 2023-06-01; an unsupported value is rejected.
R9-4    | 6 | met  | Valid provider versions are attached to the request context for auditing.
R9-5    | 4 | met  | At an upgrade, pending and approved entries without the trusted binding expire.
R9-6    | 8 | met  | After a rollback to an older snapshot, approvals require fresh review.
`);
