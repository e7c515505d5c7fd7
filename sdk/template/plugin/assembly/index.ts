import { Action, abstain, definePlugin, Value, Verdict } from "agent-governance-sdk/assembly";

export { evaluate } from "agent-governance-sdk/assembly";

definePlugin("{{name}}", (action: Action, settings: Value): Verdict => {
  const path = action.arguments.get("/path");
  if (!action.isInput || !path.isText || !leadsUpwards(path.text())) return abstain();
  const decision = settings.get("/decision").text();
  return abstain().decide(decision, "upwards", "the path leads out of its folder").at(path.pointer);
});

function leadsUpwards(path: string): bool {
  return `/${path}/`.includes("/../");
}
