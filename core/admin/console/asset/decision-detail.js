import { may, needs, Refusal, read } from "./api.js";
import { card, facts, faint, fill, link, list, make, meter, pill } from "./element.js";
import { jsonBlock } from "./json-view.js";
import {
  dayTime,
  decisionWord,
  effectOf,
  milliseconds,
  named,
  quoted,
  rulesText,
  sessionName,
  visible,
} from "./text.js";

/** Records of a session that are looked through for those of one action. */
const maxRead = 10_000;
const pageSize = 500;

const sourceWords = {
  memory: "explained with the action as it was",
  approval: "explained with the action that waits for its review",
  evidence: "explained from its record; the arguments are no longer at hand",
};

/** One decision: why it came out so, as a tree of policies, rules and conditions, and what is on record of it. */
export function openDecision({ me, feed }, id) {
  const abort = new AbortController();
  const head = make("div", "part");
  const tree = make("div", "part");
  const records = make("div", "part");
  const element = make("article", "decision", head, tree, records);
  const known = feed.decisions.find(({ data }) => data.id === id || data.action === id);
  if (known !== undefined) fill(head, headOf(summaryOf(known)));

  const load = async () => {
    const found = await explain();
    if (found === null) return;
    fill(records, card("On record", faint("Looking…")));
    fill(records, card("On record", await evidenceOf(found, abort.signal)));
  };
  /** Returns what the evidence is looked up by; null where nothing is known of the decision. */
  const explain = async () => {
    if (!may(me.role, "evidence.disclose")) {
      fill(tree, card("Why", faint(needs(me.role, "The explanation"))));
      return known === undefined ? null : placeOf(known.data);
    }
    const explanation = await read(`/admin/v1/decisions/${encodeURIComponent(id)}/explanation`, {}, abort.signal);
    fill(head, headOf({ ...explanation, action: { ...explanation.action, label: known?.data.label } }));
    fill(tree, treeOf(explanation));
    const { action } = explanation;
    return { session: action.session, action: action.id };
  };
  load().catch((error) => {
    if (abort.signal.aborted) return;
    if (!(error instanceof Refusal)) throw error;
    fill(tree, make("p", "notice", `This decision cannot be shown: ${visible(error.message)}`));
    fill(records);
  });
  return { element, close: () => abort.abort() };
}

const placeOf = ({ session, action }) => ({ session, action });

/** What the live feed says of a decision, in the form of an explanation. */
function summaryOf({ time, data }) {
  const { id, decision, by_default, rules, risk, duration_us, effect } = data;
  const { tool, target, capability, protocol, task, principal, session, label } = data;
  const action = { id: data.action, tool, target, capability, protocol, task, principal, session, label };
  return { id, time, decision, by_default, rules, risk, duration_us, effect, action };
}

function headOf({ id, time, decision, risk, action, why, duration_us: us, effect, source, does = [], ...rest }) {
  return [
    make(
      "header",
      "detail-head",
      make("h2", "", `${visible(action.capability)} ${named(action.tool)} on ${named(action.target)}`),
      make("p", "", pill(decision, decisionWord(decision)), why ? ` ${visible(why)}` : ` ${rulesText(rest)}`),
      make("p", "faint id", id),
    ),
    card(
      "What was decided about",
      does.length > 0 &&
        make(
          "ul",
          "does",
          does.map((each) => make("li", "", visible(each))),
        ),
      facts([
        ["time", dayTime(time)],
        ["who", visible(action.principal)],
        ["session", link(`#/sessions/${action.session}`, "", sessionName(action.session, action.label))],
        ["over", visible(action.protocol)],
        ["task", action.task && quoted(action.task)],
        ["effect", effect && effectOf(effect)],
        ["risk", [`${risk} of 100 `, meter("risk of the action", risk, 100)]],
        ["tainted", action.session_state?.taints.map(visible).join(", ")],
        ["ticket", action.ticket && `${visible(action.ticket.id ?? "without id")}: ${action.ticket.standing}`],
        ["policy time", us && milliseconds(us)],
        ["source", source && (sourceWords[source] ?? visible(source))],
      ]),
    ),
  ];
}

function treeOf({ policies, near, notes, values }) {
  const deciding = policies.map((each) => policyOf(each));
  const others = near.map((rule) => make("li", "", ruleOf(rule)));
  return [
    card(
      "Why",
      values !== "shown" && faint(`Values are ${values}.`),
      deciding,
      notes.map((each) => faint(visible(each))),
    ),
    others.length > 0 && card("Rules that nearly decided", make("ul", "tree", others)),
  ];
}

function policyOf({ policy, mode, verdict, decided, error, standing, findings, rules }) {
  const explained = new Set(rules.map(({ rule }) => rule));
  const items = [
    ...rules.map((rule) => make("li", "", ruleOf(rule))),
    ...findings
      .filter(({ rule }) => !explained.has(rule))
      .map(({ rule, decision, severity, message }) =>
        make(
          "li",
          "",
          pill(decision, decisionWord(decision)),
          ` ${visible(rule)} (${severity})`,
          message && `: ${visible(message)}`,
        ),
      ),
  ];
  const parts = [
    ...(error === null ? [] : [make("p", "notice", `It could not answer: ${visible(error)}`)]),
    ...(standing === "same"
      ? []
      : [faint(standing === "gone" ? "This policy is no longer loaded." : "This policy has changed since.")]),
    items.length > 0 ? make("ul", "tree", items) : faint("It found nothing."),
  ];
  const words = [
    pill(verdict === "abstain" ? "quiet" : verdict, verdict === "abstain" ? "abstained" : decisionWord(verdict)),
    ` ${visible(policy.name)} ${visible(policy.version)}`,
    make("span", "faint", ` ${policy.kind}${mode === "shadow" ? ", shadow mode" : ""}${decided ? ", decided" : ""}`),
  ];
  const details = make("details", "policy", make("summary", "", words), parts);
  details.open = decided || error !== null;
  return details;
}

function ruleOf({ rule, title, decision, severity, file, line, why, mode, mismatches, conditions }) {
  const keys = mismatches.map(({ key, expected, got }) =>
    make("li", "", `${visible(key)}: expected ${expected.map(visible).join(" or ")}, got ${visible(got)}`),
  );
  return [
    make(
      "div",
      "",
      pill(decision, decisionWord(decision)),
      make("strong", "", ` ${visible(rule)}`),
      ` ${visible(title)}`,
    ),
    faint(`${severity}${mode === "shadow" ? ", shadow mode" : ""} · ${visible(file)}:${line} · ${visible(why)}`),
    keys.length > 0 && make("ul", "tree", keys),
    conditions.length > 0 &&
      make(
        "ul",
        "tree",
        conditions.map(({ name, expression }) =>
          make("li", "", make("span", "faint", `${visible(name)} `), expressionOf(expression)),
        ),
      ),
  ];
}

const outcomeKinds = { true: "allow", false: "quiet", error: "block", budget_exceeded: "block" };

function expressionOf({ text, outcome, value, parts, more }) {
  const word = pill(outcomeKinds[outcome] ?? "quiet", outcome.replaceAll("_", " "));
  const result = value !== null && value !== outcome ? [" = ", make("code", "", visible(value))] : [];
  const inner = [
    ...parts.map((each) => make("li", "", expressionOf(each))),
    ...(more ? [make("li", "faint", "and more")] : []),
  ];
  return [make("code", "", visible(text)), " ", word, result, inner.length > 0 && make("ul", "tree", inner)];
}

/** The records of one action, found in those of its session. */
async function evidenceOf({ session, action }, signal) {
  const found = [];
  let cursor;
  for (let looked = 0; looked < maxRead && found.length < 2; looked += pageSize) {
    const path = `/admin/v1/evidence/sessions/${encodeURIComponent(session)}`;
    const page = await read(path, { limit: pageSize, cursor }, signal);
    found.push(...page.items.filter((record) => record.action?.id === action));
    cursor = page.next;
    if (cursor === null) break;
  }
  const items = found.map(({ seq, kind, time, effect, ...record }) => {
    const title = make(
      "summary",
      "",
      make("strong", "", `Record ${seq}`),
      ` ${kind}, ${effect.replaceAll("_", " ")}, ${dayTime(time)}`,
    );
    return make("li", "", make("details", "record", title, jsonBlock({ seq, kind, time, effect, ...record })));
  });
  return list(items, `None among the first ${maxRead} records of its session that are kept.`);
}
