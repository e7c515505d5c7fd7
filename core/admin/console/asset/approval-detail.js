import { change, may, needs, Refusal, read } from "./api.js";
import {
  assign,
  button,
  card,
  clock,
  countDown,
  facts,
  faint,
  field,
  fill,
  link,
  list,
  make,
  meter,
  pill,
  select,
  statusLine,
} from "./element.js";
import { jsonBlock, renderJson } from "./json-view.js";
import { clockTime, count, counted, dayTime, decisionWord, named, quoted, sessionName, visible } from "./text.js";

const withheldWords = {
  role: "The arguments are shown to reviewers only.",
  over: "The arguments are in the evidence only: the review is over.",
  incomplete: "The arguments are no longer stored whole, so this cannot be approved. The agent can ask again.",
};

/** One approval with all that a reviewer needs, and the review itself. */
export function openApproval(context, id) {
  const { me, feed, onSecond } = context;
  /** Aborted once it is read anew, or left: what was being rendered goes no further. */
  let turn = new AbortController();
  const element = make("article", "approval", faint("Reading…"));
  let shownState = "";
  let wasLive = feed.approvals.has(id);
  /** True where the feed said something while it was read. */
  let isOutrun = false;
  /** The comment as far as it is written: the approval may be read again meanwhile. */
  let draft = "";

  const load = async () => {
    const { signal } = turn;
    try {
      const view = await read(`/admin/v1/approvals/${encodeURIComponent(id)}`, {}, signal);
      shownState = `${view.approval.state} ${view.approval.endorsements.length}`;
      await render(view, signal);
      if (isOutrun) compare();
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      fill(element, make("p", "notice", `This approval cannot be shown: ${visible(error.message)}`));
    }
  };

  const render = async (view, signal) => {
    const hadFocus = element.contains(document.activeElement);
    fill(element, headOf(view), whatOf(view), changesOf(view), storyOf(view));
    const place = make("div", "whole");
    element.append(card("Arguments, whole", place));
    if (view.held === null) fill(place, faint(withheldWords[view.withheld] ?? "The arguments are withheld."));
    else {
      const { arguments: args, continuation } = view.held.action;
      await renderJson(
        place,
        continuation === undefined ? args : { arguments: args, continued_with: continuation },
        signal,
      );
    }
    // Only here, behind the end of the arguments, is there anything to approve with.
    element.append(reviewOf(view));
    if (hadFocus) assign(element.querySelector("h2"), { tabindex: "-1" }).focus();
  };

  const reviewOf = (view) => {
    const { approval, held } = view;
    if (approval.state !== "pending") return card("Review", overText(approval));
    if (!may(me.role, "approval.review")) return card("Review", faint(needs(me.role, "Reviewing")));
    const comment = make("textarea", "");
    Object.assign(comment, { rows: 2, maxLength: 1_000, value: draft });
    comment.addEventListener("input", () => {
      draft = comment.value;
    });
    const scope = select(
      [
        ["exact", "this very call, once"],
        ["task", "the same call with other values, once, in its task"],
      ],
      () => undefined,
    );
    const result = statusLine();
    const buttons = make("div", "buttons");
    const send = async (verb, body) => {
      // A button that is disabled loses the focus to nothing.
      result.focus();
      for (const each of buttons.children) each.disabled = true;
      result.textContent = "Recording…";
      const text = comment.value.trim();
      try {
        const path = `/admin/v1/approvals/${encodeURIComponent(id)}/${verb}`;
        const { approval: after } = await change(path, text === "" ? body : { ...body, comment: text });
        result.textContent = doneText(after);
        await reload();
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        result.textContent = `Not recorded: ${visible(error.message)}`;
        for (const each of buttons.children) each.disabled = false;
      }
    };
    if (held !== null) buttons.append(button("Approve", () => send("approve", { scope: scope.value }), "approve"));
    buttons.append(button("Deny", () => send("deny", {}), "deny"));
    const scoped = held === null ? [] : [field("Approval is for", scope)];
    return card("Review", field("Comment, on the record (optional)", comment), scoped, buttons, result);
  };

  const reload = () => {
    turn.abort();
    turn = new AbortController();
    shownState = "";
    isOutrun = false;
    return load();
  };
  /** Reads it again where the feed says something else than what is shown: whoever else reviews it, or its end. */
  const compare = () => {
    const live = feed.approvals.get(id);
    wasLive ||= live !== undefined;
    isOutrun = shownState === "";
    if (isOutrun || !wasLive) return;
    const now = live === undefined ? "over" : `pending ${live.endorsed ?? 0}`;
    if (now !== shownState && (now !== "over" || shownState.startsWith("pending"))) reload();
  };
  load();
  const ends = [
    onSecond(() => countDown(element)),
    feed.subscribe((change_) => {
      if (change_.approvals) compare();
    }),
  ];
  const close = () => {
    turn.abort();
    for (const end of ends) end();
  };
  return { element, close };
}

function headOf({ approval: { id, state, reason, action, expires_at: until, required, endorsements } }) {
  const isLive = state === "pending" || state === "approved";
  const kind = { pending: "review", approved: "allow", consumed: "allow", denied: "block" }[state] ?? "quiet";
  return make(
    "header",
    "detail-head",
    make("h2", "", `${visible(action.capability)} ${named(action.tool)} on ${named(action.target)}`),
    make(
      "p",
      "",
      pill(kind, reason ? `${state} (${visible(reason).replaceAll("_", " ")})` : state),
      isLive && [" ", clock(until), " left"],
      required > 1 && ` · ${endorsements.length} of ${required} reviewers approved`,
    ),
    make("p", "faint id", id),
  );
}

function whatOf({ approval, held, session, risk }) {
  const { principal, action, requested_at: requested, evaluation, session: scope } = approval;
  const rules = held?.rules ?? evaluation.rules.map((rule) => ({ rule }));
  const does = held?.does ?? [];
  const client = held?.action.client;
  const taints = held?.action.session_state?.taints ?? [];
  const reasons = rules.map(({ rule, message, severity }) =>
    make(
      "li",
      "",
      make("strong", "", visible(rule)),
      severity && ` (${visible(severity)})`,
      message && `: ${visible(message)}`,
    ),
  );
  return card(
    "What is asked",
    does.length > 0 &&
      make(
        "ul",
        "does",
        does.map((each) => make("li", "", visible(each))),
      ),
    facts([
      ["asked by", `${visible(principal.key_id)} (${principal.role})`],
      ["through", client && `${quoted(client.name)} ${quoted(client.version)} at ${visible(client.address)}`],
      ["asked at", dayTime(requested)],
      ["over", `${visible(action.protocol)}, ${scope.transport}`],
      ["task", action.task && quoted(action.task)],
      ["session", link(`#/sessions/${scope.id}`, "", sessionName(scope.id, session?.label))],
      ["risk", [`${risk} of 100 `, meter("risk of the action", risk, 100)]],
      [
        "tainted",
        taints.map(({ name, tool, target }) => `${visible(name)} by ${named(tool)} on ${named(target)}`).join("; "),
      ],
    ]),
    evaluation.by_default ? faint("Held by default: no rule matches.") : make("ul", "list", reasons),
  );
}

function changesOf({ changes }) {
  if (changes === null) return null;
  const { since, items, omitted } = changes;
  const title = "Compared with the last approved call of this tool";
  const source = make("p", "faint", "Approval ", link(`#/approvals/${since}`, "", since));
  if (items.length === 0) return card(title, source, faint("The arguments are the same."));
  const rows = items.map(({ pointer, kind, before, after }) =>
    make(
      "li",
      "",
      make("span", "strong", `${kind} ${quoted(pointer)}`),
      before !== undefined && jsonBlock(before, "before"),
      after !== undefined && jsonBlock(after, "after"),
    ),
  );
  return card(title, source, make("ul", "list", rows), omitted > 0 && faint(`and ${counted(omitted, "more change")}`));
}

function storyOf({ recent, session }) {
  const items = recent
    .toReversed()
    .map(({ time, id, decision, effect, capability, tool, target, rules, approval }) =>
      make(
        "li",
        "",
        link(
          `#/decisions/${id}`,
          "plain",
          pill(decision ?? "quiet", decisionWord(decision)),
          ` ${visible(capability)} ${named(tool)} on ${named(target)}`,
        ),
        faint(
          `${clockTime(time)} · ${effect.replaceAll("_", " ")} · ${rules.map(visible).join(", ")}`,
          approval && ` · ${approval.id} ${approval.state}`,
        ),
      ),
    );
  const sums =
    session &&
    faint(
      `${count(session.allow)} allowed, ${count(session.review)} held, ${count(session.block)} blocked since ${dayTime(session.started_at)}`,
    );
  return card("The session's story", sums, list(items, "Nothing came before it."));
}

function overText({ state, endorsements, reviewer, comment, reviewed_at: at }) {
  const remarks = endorsements.map(({ key_id: key, at: when, scope, comment: remark }) =>
    make("li", "", `${visible(key)} approved at ${dayTime(when)}, scope ${scope}`, remark && `: ${quoted(remark)}`),
  );
  if (state === "denied") {
    remarks.push(make("li", "", `${visible(reviewer)} denied at ${dayTime(at)}`, comment && `: ${quoted(comment)}`));
  }
  if (state === "approved") remarks.push(make("li", "", "The agent may repeat exactly the same call, once."));
  return list(remarks, `Nobody reviewed it: it is ${state}.`);
}

function doneText({ state, endorsements, required }) {
  if (state === "pending") return `Recorded: ${endorsements.length} of ${required} reviewers approved.`;
  return state === "approved" ? "Approved for one use." : "Denied.";
}
