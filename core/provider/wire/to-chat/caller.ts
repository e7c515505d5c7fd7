import { type Members, untranslatable } from "../member.ts";

/** Takes the `caller` of a tool call: the model itself, which goes without saying, or code that ran at the provider. */
export function directCaller(call: Members): void {
  const caller = call.members("caller");
  if (caller !== undefined && caller.string("type") !== "direct") throw untranslatable(call.at("caller"));
}
