import { Refusal, read, readAll } from "./api.js";
import { card, faint, field, fill, list, make, pill, searchBox, statusLine, table } from "./element.js";
import { owaspLists } from "./owasp.js";
import { clockTime, count, counted, decisionWord, shortId, visible } from "./text.js";
import { WindowList } from "./window-list.js";

const maxRules = 20_000;

/** The policies in force and who signed them, their rules, what shadow mode would have done, and which risks have a rule. */
export function openPolicies() {
  const abort = new AbortController();
  let rules = [];
  let search = "";
  const places = { policies: make("div", ""), shadow: make("div", ""), coverage: make("div", "") };
  const rows = new WindowList({ label: "Rules", empty: "No rule fits.", render: rowOf, keyOf: ({ rule }) => rule });
  const summary = statusLine();
  const show = () => {
    const items = rules.filter((each) => fits(each, search));
    rows.show(items);
    summary.textContent = `${counted(items.length, "rule")} of ${count(rules.length)}.`;
  };
  const box = searchBox("rule, title, decision, OWASP or CWE", (text) => {
    search = text;
    show();
  });
  const element = make(
    "div",
    "grid",
    card("Policies in the order of evaluation", places.policies),
    card("What shadow mode would have done", places.shadow),
    make("div", "wide", card("Rules", make("div", "filters", field("Search", box)), summary, rows.element)),
    make("div", "wide", card("OWASP items with a rule", places.coverage)),
  );
  const load = async () => {
    try {
      const [policies, listed, shadow] = await Promise.all([
        read("/admin/v1/policies", {}, abort.signal),
        readAll("/admin/v1/policies/rules", {}, maxRules, abort.signal),
        readAll("/admin/v1/shadow-decisions", {}, 1_000, abort.signal),
      ]);
      rules = listed.items;
      fill(places.policies, list(policies.items.map(policyOf), "None is loaded."));
      fill(places.shadow, list(shadow.items.map(shadowOf), "Nothing yet."));
      fill(places.coverage, coverageOf(rules));
      show();
    } catch (error) {
      if (abort.signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      fill(places.policies, make("p", "notice", visible(error.message)));
    }
  };
  load();
  const close = () => {
    abort.abort();
    rows.close();
  };
  return { element, close };
}

function policyOf({ kind, name, version, digest, signer, mode }) {
  const signed = kind === "session" ? "built in" : signer ? `signed by ${visible(signer)}` : "unsigned";
  return make(
    "li",
    "",
    make("strong", "", `${visible(name)} ${visible(version)} `),
    pill(mode === "enforce" ? "allow" : "quiet", mode === "enforce" ? "enforced" : "shadow mode"),
    faint(`${kind}, ${signed}`, digest && ` · ${shortId(digest)}`),
  );
}

function shadowOf({ rule, decision, count: times, last_time: last, policy }) {
  const words = { review: "would have held", block: "would have blocked" };
  return make(
    "li",
    "",
    make("strong", "", `${visible(rule)} `),
    pill(decision, `${words[decision]} ${count(times)}`),
    faint(`${visible(policy.name)} · last at ${clockTime(last)}`),
  );
}

function fits({ rule, title, decision, severity, references }, search) {
  if (search === "") return true;
  return [rule, title, decision, decisionWord(decision), severity, ...references].some((each) =>
    each.toLowerCase().includes(search),
  );
}

function rowOf({ rule, title, decision, severity, mode, references, expires }) {
  const more = [
    severity,
    mode === "shadow" && "shadow mode",
    expires && `until ${visible(expires)}`,
    ...references.map(visible),
  ];
  return make(
    "div",
    "row-link",
    make(
      "span",
      "row-main",
      pill(decision, decisionWord(decision)),
      make("strong", "", ` ${visible(rule)} `),
      visible(title),
    ),
    make("span", "row-more", more.filter(Boolean).join(" · ")),
  );
}

/** Which items of the OWASP lists the rules in force refer to. That a rule refers to one does not say that it is all it takes. */
function coverageOf(rules) {
  const byItem = new Map();
  for (const { rule, mode, references } of rules) {
    for (const each of references) byItem.set(each, [...(byItem.get(each) ?? []), { rule, mode }]);
  }
  const tables = owaspLists.map(({ name, items }) => {
    const covered = items.filter(([id]) => byItem.has(id)).length;
    const lines = items.map(([id, title]) => {
      const own = byItem.get(id) ?? [];
      const enforced = own.filter(({ mode }) => mode === "enforce").length;
      const word =
        own.length === 0
          ? pill("quiet", "no rule")
          : pill(enforced > 0 ? "allow" : "review", counted(own.length, "rule"));
      return [
        `${id.replace("OWASP-", "")} ${title}`,
        word,
        own.length > enforced ? counted(own.length - enforced, "rule") : "–",
      ];
    });
    return table(`${name}: ${covered} of ${items.length}`, ["item", "rules", "of them in shadow mode"], lines);
  });
  return [
    faint("A rule names the items that it is about. Having one does not mean that an item is dealt with."),
    make("div", "tables", tables),
  ];
}
