/** The kinds of effect that an action can have, weakest first; most rules match on them. */
export const capabilities = ["read", "generate", "network", "write", "execute", "approve", "deploy", "delete"] as const;
export type Capability = (typeof capabilities)[number];

/** The hints an MCP server gives about its tool. They come from an untrusted upstream. */
interface ToolAnnotations {
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
}

interface CapabilityClaims {
  /** The capability that the operator's configuration states for this tool. */
  readonly configured?: Capability | undefined;
  readonly annotations?: ToolAnnotations | undefined;
  /** True where the operator trusts this upstream's annotations. */
  readonly trustAnnotations: boolean;
}

/**
 * The capability of a tool: configuration first, then annotations, then `execute`.
 * Annotations may tighten what is configured; they loosen only where the operator trusts them.
 */
export function resolveCapability(claims: CapabilityClaims): Capability {
  const hinted = capabilityHint(claims.annotations);
  if (claims.configured !== undefined) return hinted === "delete" ? "delete" : claims.configured;
  if (hinted === "delete" || claims.trustAnnotations) return hinted ?? "execute";
  return "execute";
}

function capabilityHint(annotations: ToolAnnotations | undefined): Capability | undefined {
  if (annotations?.readOnlyHint === true) return "read";
  if (annotations?.destructiveHint === true) return "delete";
  if (annotations?.destructiveHint === false) return "write";
  return undefined;
}
