import type { Participant } from "../action/participant.ts";
import type { DriftPolicy } from "./manifest-control.ts";

/** Holds or blocks actions that depart from the manifest of their task. */
export function manifestParticipant(driftPolicy: DriftPolicy): Participant {
  return { name: "manifest", policy: driftPolicy };
}
