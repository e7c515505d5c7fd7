/** Where a request stands in a distributed trace, as W3C Trace Context has it. */
export interface TraceContext {
  /** 32 lower-case hex digits, not all of them 0. */
  readonly traceId: string;
  /** 16 of them: the span that asks. */
  readonly spanId: string;
  readonly sampled: boolean;
  /** `tracestate`; undefined where there is none, or none that can be read. */
  readonly state?: string;
}

const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const nothing = /^0+$/;
const longestParent = 256;

/**
 * Reads what a caller says of its trace. Whatever is malformed is undefined, and with `traceparent` goes `tracestate`:
 * a caller cannot make a request fail with it.
 */
export function readTraceContext(traceparent: unknown, tracestate?: unknown): TraceContext | undefined {
  if (typeof traceparent !== "string" || traceparent.length > longestParent) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", more] = shape.exec(traceparent) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (nothing.test(traceId) || nothing.test(spanId)) return undefined;
  const sampled = (Number.parseInt(flags, 16) & 1) === 1;
  return { traceId, spanId, sampled, ...(isTraceState(tracestate) ? { state: tracestate } : {}) };
}

/** The value of `traceparent`. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

const stateKey = /^(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})$/;
const stateValue = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
const longestState = 512;
const mostMembers = 32;

function isTraceState(value: unknown): value is string {
  if (typeof value !== "string" || value.length === 0 || value.length > longestState) return false;
  const members = value.split(",").map((member) => member.trim());
  const keys = members.map((member) => member.slice(0, member.indexOf("=")));
  if (members.length > mostMembers || new Set(keys).size !== keys.length) return false;
  return members.every((member, at) => {
    const key = keys[at] as string;
    return stateKey.test(key) && stateValue.test(member.slice(key.length + 1));
  });
}
