import { Action, abstain, definePlugin, Reader, Token, Value, Verdict } from "agent-governance-sdk/assembly";
import { setName } from "./context";
import { setWanted } from "./found";
import { Kind, labelOf, ruleOf, settingOf } from "./kind";
import { countFixed, countText, tell } from "./tally";
import { findEnd, findKind, findStart, search } from "./text-search";

export { evaluate } from "agent-governance-sdk/assembly";

/** The action for each kind: `redact`, `review`, `block` or `ignore`. */
const manners = new StaticArray<string>(Kind.count);

/** Personal data in an answer; in what is sent, where the settings ask for it. */
definePlugin("pii-guard", (action: Action, settings: Value): Verdict => {
  const verdict = abstain();
  const atInput = settings.get("/input").text();
  const isInput = action.isInput && atInput !== "ignore";
  if (!isInput && !action.isOutput) return verdict;
  readManners(settings, isInput ? atInput : "");
  if (isInput) {
    look(action.arguments.read(), verdict, false);
    look(action.continuation.read(), verdict, false);
  } else look(action.output.read(), verdict, true);
  for (let kind = 0; kind < Kind.count; kind++) tell(verdict, kind, manners[kind]);
  return verdict;
});

/** `instead` takes the place of whatever is done to a kind that is not ignored. */
function readManners(settings: Value, instead: string): void {
  let wanted = 0;
  for (let kind = 0; kind < Kind.count; kind++) {
    const manner = settings.get(`/${settingOf(kind)}`).text();
    if (manner !== "ignore") wanted |= 1 << kind;
    manners[kind] = instead === "" || manner === "ignore" ? manner : instead;
  }
  setWanted(wanted);
}

function look(reader: Reader, verdict: Verdict, mayRedact: bool): void {
  /** Below this depth a name is personal data itself, so no pointer may contain it. */
  let sealedDepth: i32 = i32.MAX_VALUE;
  while (reader.next()) {
    const isName = reader.token === Token.name;
    const above = reader.depth - 1;
    // A new name at this level: what was sealed here or below is done.
    if (isName && sealedDepth >= above) sealedDepth = i32.MAX_VALUE;
    const isText = reader.token === Token.text;
    const found = searchAt(reader, isName);
    if (found === 0) continue;
    if (isName) sealedDepth = above;
    const pointer = reader.pointer(min(reader.depth, sealedDepth));
    // A redaction names its place below the answer, and a sealed place cannot be named.
    if (isText && reader.depth > 0 && sealedDepth === i32.MAX_VALUE) noteTexts(verdict, found, pointer, mayRedact);
    else for (let index = 0; index < found; index++) countFixed(findKind(index), pointer);
  }
}

function searchAt(reader: Reader, isName: bool): i32 {
  const name = reader.stepName();
  if (isName || name === null) setName(0, 0);
  else setName(<usize>name.from, name.length);
  if (reader.token === Token.literal) return search(reader.from, reader.to, false);
  const text = reader.decoded();
  // A text without JSON escapes contains no backslash.
  return search(text.from, text.to, text.from !== reader.from);
}

function noteTexts(verdict: Verdict, found: i32, pointer: string, mayRedact: bool): void {
  for (let index = 0; index < found; index++) {
    const kind = findKind(index);
    countText(kind, pointer);
    if (mayRedact) verdict.redact(ruleOf(kind), pointer, findStart(index), findEnd(index), labelOf(kind));
  }
}
