import { Action } from "./action";
import { readInput, writeOutput } from "./exchange";
import { Value } from "./value";
import { Verdict } from "./verdict";
import { Writer } from "./writer";

/** Judges an action, with the plugin's settings: the author's defaults, the operator's values in their place. */
export type Judge = (action: Action, settings: Value) => Verdict;

let pluginName: string = "";
let pluginJudge: Judge | null = null;

/** Registers the plugin, with the name in its manifest, and its judge. Call once, at the top of `index.ts`. */
export function definePlugin(name: string, judge: Judge): void {
  pluginName = name;
  pluginJudge = judge;
}

/** The export called for each action: `export { evaluate } from "agent-governance-sdk/assembly"`. */
export function evaluate(): i32 {
  const input = readInput();
  const root = new Value(input.from, input.to, "");
  const judge = pluginJudge;
  // A trap, which blocks the action.
  if (judge === null) return unreachable();
  const action = root.get("/action");
  action.pointer = "";
  const verdict = judge(new Action(action), root.get("/settings"));
  const writer = new Writer();
  verdict.write(writer, pluginName);
  writeOutput(writer.written);
  return 0;
}
