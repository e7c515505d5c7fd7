import { Action, abstain, definePlugin, Reader, Severity, Token, Value, Verdict } from "agent-governance-sdk/assembly";
import { counts, enterText, isHeard, score, textOf } from "./score";
import { messageOf, ruleOf, Signal } from "./signal";
import { readText } from "./text-reader";
import { learn } from "./vocabulary";

export { evaluate } from "agent-governance-sdk/assembly";

/** The place of each text that was read, by its number. */
const pointers: string[] = [];

learn();

/** Instructions in what tools answered, in the answer itself and in what is fed back to a model, and in their definitions. */
definePlugin("prompt-injection", (action: Action, settings: Value): Verdict => {
  const verdict = abstain();
  const isModel = action.protocol === "model";
  if (isModel && action.isInput) readConversation(action.arguments.get("/messages").items());
  else if (!isModel && action.isOutput) readAll(action.output.read());
  else if (action.isList) readAll(action.get("/tool_definition").read());
  if (score() >= <i32>settings.get("/threshold").integer()) tell(verdict, settings.get("/decision").text(), isModel);
  return verdict;
});

/** Tool output in a conversation: messages of a tool, and blocks that are a tool's result. */
function readConversation(messages: Value[]): void {
  for (let index = 0; index < messages.length; index++) {
    const role = messages[index].get("/role");
    const content = messages[index].get("/content");
    if (role.is("tool") || role.is("function")) readAll(content.read());
    else readResults(content.items());
  }
}

function readResults(blocks: Value[]): void {
  for (let index = 0; index < blocks.length; index++) {
    if (blocks[index].get("/type").is("tool_result")) readAll(blocks[index].get("/content").read());
  }
}

function readAll(reader: Reader): void {
  while (reader.next()) {
    if (reader.token === Token.literal) continue;
    const text = reader.decoded();
    enterText(pointers.length);
    readText(text, text.from !== reader.from);
    if (isHeard()) pointers.push(reader.pointer());
  }
}

/** A mark permits nothing: an answer passes anyway, and a request to a model has to be allowed by others. */
function tell(verdict: Verdict, decision: string, isRequest: bool): void {
  const risk = min(100, score());
  for (let signal = 0; signal < Signal.count; signal++) {
    if (!counts(signal)) continue;
    if (decision !== "mark") verdict.decide(decision, ruleOf(signal), messageOf(signal));
    else if (isRequest) verdict.note(ruleOf(signal), messageOf(signal));
    else verdict.allow(ruleOf(signal), messageOf(signal));
    verdict.severity(risk < 80 ? Severity.medium : Severity.high).risk(risk);
    verdict.at(pointers[textOf(signal)]);
  }
}
