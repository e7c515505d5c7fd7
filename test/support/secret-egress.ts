import type { JsonObject } from "../../core/action/json.ts";
import { folderOf, moduleOfFirstParty, openFirstParty } from "./first-party.ts";
import type { ImmediatePolicy } from "./plugin-port.ts";

export const secretEgress: string = folderOf("secret-egress");

/** The shipped plugin, loaded as the gateway loads it. */
export function openSecretEgress(settings: JsonObject = {}): Promise<ImmediatePolicy> {
  return openFirstParty("secret-egress", settings);
}

/** The committed module. */
export function secretEgressModule(): Buffer {
  return moduleOfFirstParty("secret-egress");
}
