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
 * The capability of a tool: what the configuration states is final. Where it states nothing, annotations may tighten
 * `execute`; they loosen it only where the operator trusts them.
 */
export function resolveCapability(claims: CapabilityClaims): Capability {
  if (claims.configured !== undefined) return claims.configured;
  const hinted = capabilityHint(claims.annotations);
  if (hinted === "delete" || claims.trustAnnotations) return hinted ?? "execute";
  return "execute";
}

/** Returns the stronger capability that annotations claim for a tool whose own one is configured; undefined for none. */
export function contradictingHint({ configured, annotations }: CapabilityClaims): Capability | undefined {
  const hinted = capabilityHint(annotations);
  if (configured === undefined || hinted === undefined) return undefined;
  return capabilities.indexOf(hinted) > capabilities.indexOf(configured) ? hinted : undefined;
}

function capabilityHint(annotations: ToolAnnotations | undefined): Capability | undefined {
  if (annotations?.readOnlyHint === true) return "read";
  if (annotations?.destructiveHint === true) return "delete";
  if (annotations?.destructiveHint === false) return "write";
  return undefined;
}
