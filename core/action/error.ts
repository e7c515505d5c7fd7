/** The rendering of one code on every API. Codes never change meaning. */
interface ErrorRow {
  readonly status: number;
  readonly jsonRpc: number;
  /** True where the caller may see the detail; otherwise only the log has it. */
  readonly expose: boolean;
  readonly text: string;
}

const table = {
  MALFORMED_JSON: { status: 400, jsonRpc: -32700, expose: true, text: "malformed JSON" },
  JSON_BOUND: { status: 400, jsonRpc: -32600, expose: true, text: "JSON exceeds a bound" },
  INVALID_REQUEST: { status: 400, jsonRpc: -32600, expose: true, text: "invalid request" },
  INVALID_PARAMS: { status: 400, jsonRpc: -32602, expose: true, text: "invalid params" },
  INVALID_ENVELOPE: { status: 400, jsonRpc: -32602, expose: true, text: "invalid request envelope" },
  ENVELOPE_BOUND: { status: 400, jsonRpc: -32602, expose: true, text: "action exceeds a bound" },
  HEADER_MISMATCH: { status: 400, jsonRpc: -32020, expose: true, text: "header and body disagree" },
  CLIENT_CAPABILITY_MISSING: { status: 400, jsonRpc: -32021, expose: true, text: "client capability required" },
  PROTOCOL_VERSION: { status: 400, jsonRpc: -32022, expose: true, text: "unsupported protocol version" },
  DUPLICATE_HEADER: { status: 400, jsonRpc: -32600, expose: true, text: "duplicate header" },
  INVALID_HEADER: { status: 400, jsonRpc: -32600, expose: true, text: "invalid header" },
  BODY_TOO_LARGE: { status: 413, jsonRpc: -32600, expose: true, text: "request body too large" },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, jsonRpc: -32600, expose: true, text: "unsupported media type" },
  UPGRADE_REQUIRED: { status: 426, jsonRpc: -32600, expose: true, text: "upgrade required" },
  HEADERS_TOO_LARGE: { status: 431, jsonRpc: -32600, expose: true, text: "request headers too large" },
  KEY_MISSING: { status: 401, jsonRpc: 1401, expose: true, text: "authentication required" },
  KEY_UNKNOWN: { status: 401, jsonRpc: 1401, expose: true, text: "unknown key" },
  TOKEN_INVALID: { status: 401, jsonRpc: 1401, expose: true, text: "invalid access token" },
  LINK_INVALID: { status: 401, jsonRpc: 1401, expose: true, text: "this link no longer opens the console" },
  SIGN_IN_STALE: { status: 401, jsonRpc: 1401, expose: true, text: "the sign-in is too old for a change" },
  SIGN_IN_REFUSED: { status: 401, jsonRpc: 1401, expose: true, text: "the sign-in was refused" },
  SIGN_IN_UNAVAILABLE: { status: 503, jsonRpc: 1503, expose: true, text: "the identity provider is unavailable" },
  CSRF_INVALID: { status: 403, jsonRpc: 1403, expose: true, text: "missing or wrong CSRF token" },
  ROLE_FORBIDDEN: { status: 403, jsonRpc: 1403, expose: true, text: "this role may not do that" },
  HOST_FORBIDDEN: { status: 403, jsonRpc: 1403, expose: true, text: "host not allowed" },
  ORIGIN_FORBIDDEN: { status: 403, jsonRpc: 1403, expose: true, text: "origin not allowed" },
  NOT_FOUND: { status: 404, jsonRpc: 1404, expose: true, text: "not found" },
  SESSION_UNKNOWN: { status: 404, jsonRpc: 1404, expose: true, text: "session not found" },
  SESSION_AMBIGUOUS: { status: 409, jsonRpc: 1409, expose: true, text: "several sessions have this name" },
  SESSION_STATE: { status: 409, jsonRpc: 1409, expose: true, text: "the kill switch is in another state" },
  SESSION_DAMAGED: { status: 409, jsonRpc: 1409, expose: true, text: "the stored state of the session is damaged" },
  TAINT_LIMIT: { status: 409, jsonRpc: 1409, expose: true, text: "the session has too many taints" },
  SESSION_KILLED: { status: 403, jsonRpc: 1403, expose: true, text: "stopped by the kill switch" },
  TASK_REFERENCE: { status: 403, jsonRpc: 1403, expose: true, text: "invalid task reference" },
  TASK_BOUND: { status: 403, jsonRpc: 1403, expose: true, text: "the session cannot take this task" },
  MANIFEST_CONFLICT: { status: 409, jsonRpc: 1409, expose: true, text: "conflicts with an existing manifest" },
  METHOD_NOT_ALLOWED: { status: 405, jsonRpc: -32600, expose: true, text: "method not allowed" },
  METHOD_UNKNOWN: { status: 404, jsonRpc: -32601, expose: true, text: "method not found" },
  TOOL_UNKNOWN: { status: 404, jsonRpc: -32602, expose: true, text: "unknown tool" },
  RESOURCE_UNKNOWN: { status: 404, jsonRpc: -32602, expose: true, text: "resource not found" },
  PROMPT_UNKNOWN: { status: 404, jsonRpc: -32602, expose: true, text: "unknown prompt" },
  APPROVAL_STATE: { status: 409, jsonRpc: 1409, expose: true, text: "the approval is in another state" },
  APPROVAL_ENDORSED: { status: 409, jsonRpc: 1409, expose: true, text: "this reviewer has already reviewed it" },
  APPROVAL_INCOMPLETE: {
    status: 409,
    jsonRpc: 1409,
    expose: true,
    text: "the action cannot be shown in full",
  },
  APPROVAL_SELF_REVIEW: { status: 403, jsonRpc: 1403, expose: true, text: "self-review is not allowed" },
  APPROVAL_DENIED: { status: 403, jsonRpc: 1403, expose: true, text: "denied by a reviewer" },
  APPROVAL_QUEUE_FULL: { status: 503, jsonRpc: 1503, expose: true, text: "the review queue is full" },
  BREAK_GLASS_FORBIDDEN: { status: 403, jsonRpc: 1403, expose: true, text: "break-glass is not permitted" },
  SESSION_LIMIT: { status: 429, jsonRpc: 1429, expose: true, text: "too many sessions" },
  CONNECTION_BUSY: { status: 429, jsonRpc: 1429, expose: true, text: "too many concurrent requests on one connection" },
  TICKET_STATE: { status: 409, jsonRpc: 1409, expose: true, text: "the ticket is in another state" },
  TICKET_SELF_ISSUE: { status: 403, jsonRpc: 1403, expose: true, text: "self-issued tickets are not allowed" },
  TICKET_LIMIT: { status: 429, jsonRpc: 1429, expose: true, text: "too many tickets" },
  DEFINITION_STATE: { status: 409, jsonRpc: 1409, expose: true, text: "the definition is in another state" },
  DEFINITION_CHANGED: { status: 409, jsonRpc: 1409, expose: true, text: "the tool's definition has changed" },
  POLICY_BLOCKED: { status: 403, jsonRpc: 1403, expose: true, text: "blocked by policy" },
  REVIEW_REQUIRED: { status: 403, jsonRpc: 1403, expose: true, text: "held for review" },
  UPSTREAM_UNAVAILABLE: { status: 502, jsonRpc: 1502, expose: true, text: "upstream unavailable" },
  UPSTREAM_STARTING: { status: 503, jsonRpc: 1503, expose: true, text: "upstream is starting" },
  UPSTREAM_TIMEOUT: { status: 504, jsonRpc: 1504, expose: true, text: "upstream did not answer in time" },
  UPSTREAM_INVALID: { status: 502, jsonRpc: 1502, expose: true, text: "invalid response from upstream" },
  UPSTREAM_BUSY: { status: 503, jsonRpc: 1503, expose: true, text: "upstream has no free connection" },
  MODEL_UNKNOWN: { status: 404, jsonRpc: 1404, expose: true, text: "unknown model" },
  MODEL_UNTRANSLATABLE: { status: 400, jsonRpc: 1400, expose: true, text: "no equivalent in the other model API" },
  PROVIDER_REFUSED: { status: 400, jsonRpc: 1400, expose: true, text: "the provider refused the request" },
  PROVIDER_BUSY: { status: 429, jsonRpc: 1429, expose: true, text: "the provider is busy" },
  PROVIDER_UNAVAILABLE: { status: 502, jsonRpc: 1502, expose: true, text: "provider unavailable" },
  PROVIDER_TIMEOUT: { status: 504, jsonRpc: 1504, expose: true, text: "provider did not answer in time" },
  PROVIDER_INVALID: { status: 502, jsonRpc: 1502, expose: true, text: "invalid response from provider" },
  TOOLS_DISABLED: { status: 400, jsonRpc: -32602, expose: true, text: "tools of this kind are not passed on" },
  VERSION_CONFLICT: { status: 400, jsonRpc: -32600, expose: true, text: "two API versions requested" },
  VERSION_UNSUPPORTED: { status: 400, jsonRpc: -32600, expose: true, text: "unsupported version of the API" },
  GATEWAY_BUSY: { status: 503, jsonRpc: 1503, expose: true, text: "the gateway is at capacity" },
  RATE_LIMITED: { status: 429, jsonRpc: 1429, expose: true, text: "too many requests" },
  BUDGET_EXHAUSTED: { status: 429, jsonRpc: 1429, expose: true, text: "the budget is used up" },
  EVIDENCE_UNAVAILABLE: { status: 503, jsonRpc: 1503, expose: true, text: "evidence cannot be written" },
  EXPORT_BOUND: { status: 422, jsonRpc: -32600, expose: true, text: "the export exceeds a bound" },
  EVIDENCE_BUSY: { status: 409, jsonRpc: 1409, expose: true, text: "another prune or erasure is running" },
  BACKUP_BUSY: { status: 409, jsonRpc: 1409, expose: true, text: "another backup is running" },
  CLIENT_BUSY: { status: 503, jsonRpc: 1503, expose: true, text: "the client has too many open requests" },
  CLIENT_TIMEOUT: { status: 504, jsonRpc: 1504, expose: true, text: "the client did not answer in time" },
  CANCELLED: { status: 499, jsonRpc: 1499, expose: true, text: "cancelled by the client" },
  STOPPING: { status: 503, jsonRpc: 1503, expose: true, text: "the gateway is stopping" },
  CONFIG_INVALID: { status: 500, jsonRpc: -32603, expose: false, text: "invalid configuration" },
  EXTENSION_INVALID: { status: 500, jsonRpc: -32603, expose: false, text: "invalid extension" },
  EXTENSION_REFUSED: { status: 500, jsonRpc: -32603, expose: false, text: "extension refused" },
  ARTIFACT_REFUSED: { status: 500, jsonRpc: -32603, expose: false, text: "artifact refused" },
  REGISTRY_REFUSED: { status: 500, jsonRpc: -32603, expose: false, text: "the registry refused" },
  REGISTRY_UNREACHABLE: { status: 500, jsonRpc: -32603, expose: false, text: "registry unreachable" },
  TRUSTED_ROOT_REFUSED: { status: 500, jsonRpc: -32603, expose: false, text: "trusted root refused" },
  TUF_UNREACHABLE: { status: 500, jsonRpc: -32603, expose: false, text: "TUF repository unreachable" },
  KEY_UNUSABLE: { status: 500, jsonRpc: -32603, expose: false, text: "key cannot be used" },
  SIGNING_FAILED: { status: 500, jsonRpc: -32603, expose: false, text: "signing failed" },
  PACK_INVALID: { status: 500, jsonRpc: -32603, expose: false, text: "invalid policy pack" },
  PLUGIN_INVALID: { status: 500, jsonRpc: -32603, expose: false, text: "invalid plugin" },
  ENGINE_INVALID: { status: 500, jsonRpc: -32603, expose: false, text: "invalid policy engine" },
  EVIDENCE_JOB_FAILED: { status: 500, jsonRpc: -32603, expose: false, text: "the evidence job failed" },
  BACKUP_FAILED: { status: 500, jsonRpc: -32603, expose: false, text: "the backup failed" },
  BACKUP_REFUSED: { status: 500, jsonRpc: -32603, expose: false, text: "backup refused" },
  STATE_UNUSABLE: { status: 500, jsonRpc: -32603, expose: false, text: "state cannot be used" },
  GATEWAY_UNREACHABLE: { status: 500, jsonRpc: -32603, expose: false, text: "gateway unreachable" },
  PORT_UNAVAILABLE: { status: 500, jsonRpc: -32603, expose: false, text: "port cannot be opened" },
  INTERNAL: { status: 500, jsonRpc: -32603, expose: false, text: "internal error" },
} as const;

export type ErrorCode = keyof typeof table;

/**
 * The one error table. The README's reference is generated from it.
 * JSON-RPC application codes stay outside −32768…−32000, which the protocol keeps for itself.
 */
export const errorTable: Readonly<Record<ErrorCode, ErrorRow>> = table;

export interface ErrorOptions {
  readonly cause?: unknown;
  /** Machine-readable particulars; shown to the caller where the code is exposed. */
  readonly data?: Readonly<Record<string, unknown>>;
}

/** The only error that leaves a module. Its text is lower case: `expected A, got B`. */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly detail: string | undefined;
  readonly data: Readonly<Record<string, unknown>> | undefined;

  constructor(code: ErrorCode, detail?: string, options: ErrorOptions = {}) {
    super(detail === undefined ? errorTable[code].text : `${errorTable[code].text}: ${detail}`, {
      cause: options.cause,
    });
    this.name = "GatewayError";
    this.code = code;
    this.detail = detail;
    this.data = options.data;
  }

  get row(): ErrorRow {
    return errorTable[this.code];
  }

  /** The text for the caller: the whole text where the code is exposed, else its constant part. */
  get publicMessage(): string {
    return this.row.expose ? this.message : this.row.text;
  }

  /**
   * The detail for the log. In errors that callers see, everything from the first backtick to the last is left out: it
   * quotes input, which may be a secret and may itself contain backticks.
   */
  get loggedDetail(): string | undefined {
    return this.row.expose ? this.detail?.replace(/`.*`/s, "`...`") : this.detail;
  }

  /** Returns a thrown value as a GatewayError; any other value becomes INTERNAL with the value as its cause. */
  static from(error: unknown): GatewayError {
    if (error instanceof GatewayError) return error;
    return new GatewayError("INTERNAL", error instanceof Error ? error.message : String(error), { cause: error });
  }
}
