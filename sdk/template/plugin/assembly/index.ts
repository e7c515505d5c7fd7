import { Action, abstain, definePlugin, Value, Verdict } from "agent-governance-sdk/assembly";

export { evaluate } from "agent-governance-sdk/assembly";

definePlugin("{{name}}", (action: Action, settings: Value): Verdict => {
  const paths = action.arguments.get("/paths");
  if (!action.isInput || !paths.isList || count(paths) <= settings.get("/most").integer()) return abstain();
  const decision = settings.get("/decision").text();
  return abstain().decide(decision, "too-many", "the call is about too many paths at once").at(paths.pointer);
});

function count(list: Value): i32 {
  return list.items().length;
}
