import { Action, abstain, definePlugin, Reader, Severity, Token, Value, Verdict } from "agent-governance-sdk/assembly";
import { FoundList, hasNoted, ignore, isNoted, isWanted, note } from "./found";
import { isSecretName } from "./keyword";
import { keyword, kindCount, kindOf, phraseOf, ruleOf } from "./kind";
import { looksRandom, setLeastEntropy } from "./random-value";
import { search } from "./text-search";

export { evaluate } from "agent-governance-sdk/assembly";

const maxFindings: i32 = 16;
const replacement = "[redacted]";

const list = new FoundList();

/** `review` or `block`; of an answer `mark` and `redact`, too. */
let handling = "";
let isAnswer: bool = false;
let count: i32 = 0;

/** Credentials that leave in a call's arguments or in what continues it, and those that an answer brings. */
definePlugin("secret-egress", (action: Action, settings: Value): Verdict => {
  const verdict = abstain();
  isAnswer = action.isOutput;
  if (!action.isInput && !isAnswer) return verdict;
  handling = settings.get(isAnswer ? "/output" : "/decision").text();
  if (handling === "ignore") return verdict;
  setLeastEntropy(<i32>settings.get("/least_entropy").integer());
  const ignored = settings.get("/ignore").items();
  for (let index = 0; index < ignored.length; index++) ignore(kindOf(ignored[index].text()));
  // An answer is full of names such as `next_page_token`: there a name alone makes no credential.
  if (isAnswer) ignore(keyword);
  if (isAnswer) judge(action.output.read(), verdict);
  else {
    judge(action.arguments.read(), verdict);
    judge(action.continuation.read(), verdict);
  }
  return verdict;
});

function judge(reader: Reader, verdict: Verdict): void {
  /** Below this depth a name is a credential itself, so the pointer must not contain it. */
  let sealedDepth: i32 = i32.MAX_VALUE;
  while ((count < maxFindings || handling === "redact") && reader.next()) {
    if (reader.token === Token.literal) continue;
    const isName = reader.token === Token.name;
    const above = reader.depth - 1;
    // A new name at this level: what was sealed here or below is done.
    if (isName && sealedDepth >= above) sealedDepth = i32.MAX_VALUE;
    look(reader, isName);
    if (!hasNoted()) continue;
    if (isName) sealedDepth = above;
    const pointer = reader.pointer(min(reader.depth, sealedDepth));
    // A redaction names its place below the answer, and a sealed place cannot be named.
    const canRedact = !isName && reader.depth > 0 && sealedDepth === i32.MAX_VALUE;
    if (handling === "redact" && canRedact) redact(verdict, pointer);
    reportAll(verdict, pointer, canRedact);
  }
}

function look(reader: Reader, isName: bool): void {
  const text = reader.decoded();
  search(text, text.from !== reader.from, list);
  if (isName || hasNoted() || !isWanted(keyword)) return;
  const name = reader.stepName();
  if (name !== null && isSecretName(name.from, name.to) && looksRandom(text.from, text.to)) note(keyword);
}

function redact(verdict: Verdict, pointer: string): void {
  for (let index = 0; index < list.count; index++) {
    verdict.redact(ruleOf(list.kind(index)), pointer, list.start(index), list.end(index), replacement);
  }
}

/** The kind that is told by a name alone comes last. */
function reportAll(verdict: Verdict, pointer: string, canRedact: bool): void {
  for (let kind = 0; kind < kindCount(); kind++)
    if (kind !== keyword && isNoted(kind)) report(verdict, kind, pointer, canRedact);
  if (isNoted(keyword)) report(verdict, keyword, pointer, canRedact);
}

function report(verdict: Verdict, kind: i32, pointer: string, canRedact: bool): void {
  const mustBlock = handling === "redact" && !canRedact;
  // What cannot be redacted blocks, however many were told before.
  if (count >= maxFindings && !mustBlock) return;
  count++;
  const message = `${isAnswer ? "the answer holds" : "the arguments hold"} ${phraseOf(kind)}`;
  if (mustBlock) verdict.block(ruleOf(kind), `${message} where nothing can be redacted, in a name or a bare text`);
  else if (handling === "redact") verdict.note(ruleOf(kind), `${message}, redacted`);
  else if (handling === "mark") verdict.note(ruleOf(kind), message);
  else verdict.decide(handling, ruleOf(kind), message);
  const severity = kind === keyword ? Severity.high : Severity.critical;
  verdict.severity(severity).risk(90).at(pointer);
}
