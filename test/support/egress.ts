import { EgressGuard } from "../../core/egress/egress-guard.ts";

/** The way out of a gateway that is configured with the defaults, without ports of its own. */
export const egress: EgressGuard = new EgressGuard({ privateHosts: [] });
