import type { Participant } from "../action/participant.ts";
import type { KillSwitch } from "./kill-switch.ts";

/**
 * Blocks whatever is stopped, twice: as a policy, so that the record shows why, and in the turn of the commit, for a kill
 * that came while the action was judged.
 */
export function killParticipant(killSwitch: KillSwitch): Participant {
  return {
    name: "kill",
    policy: killSwitch,
    begin: (attempted) => ({ check: () => killSwitch.check(attempted) }),
  };
}
