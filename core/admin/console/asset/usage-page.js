import { Refusal, read, readAll } from "./api.js";
import { Chart } from "./chart.js";
import { card, faint, fill, list, make, meter, table } from "./element.js";
import { count, visible } from "./text.js";

const maxRows = 2_000;
const dayMs = 86_400_000;

/** The use of models: tokens a day, by who asked and which model, and what is left of budgets. */
export function openUsage({ feed }) {
  const abort = new AbortController();
  const totals = make("div", "tiles");
  const byWho = make("div", "");
  const budgets = make("div", "");
  const days = new Chart(
    "Tokens a day",
    [
      { label: "output", color: "review" },
      { label: "input", color: "accent" },
    ].map((each) => ({ ...each, isFilled: true })),
    {
      unit: (value) => count(value),
      days: true,
      bars: true,
      sum: ([times]) => `${times.length} days; the table below has the numbers.`,
    },
  );
  const showBudgets = () => {
    if (feed.overview !== null) fill(budgets, budgetList(feed.overview.budgets));
  };
  const load = async () => {
    try {
      const [byDay, rows] = await Promise.all([
        read("/admin/v1/usage", { by: "day", limit: 31 }, abort.signal),
        readAll("/admin/v1/usage", { by: "principal,provider,model" }, maxRows, abort.signal),
      ]);
      fill(totals, tilesOf(byDay.totals));
      days.show(columnsOf(byDay));
      fill(byWho, tableOf(rows.items, byDay));
    } catch (error) {
      if (abort.signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      fill(byWho, make("p", "notice", visible(error.message)));
    }
  };
  const element = make(
    "div",
    "grid",
    totals,
    make("div", "card wide", days.element),
    make("div", "wide", card("By who asked", byWho)),
    card("Budgets", budgets),
  );
  showBudgets();
  load();
  const end = feed.subscribe(({ overview }) => {
    if (overview) showBudgets();
  });
  const close = () => {
    abort.abort();
    end();
    days.close();
  };
  return { element, close };
}

function tilesOf({ requests, input_tokens: input, output_tokens: output, cached_input_tokens: cached }) {
  const tile = (value, caption) => make("div", "tile", make("span", "number", count(value)), make("span", "", caption));
  return [
    tile(requests, "requests"),
    tile(input, "input tokens"),
    tile(output, "output tokens"),
    tile(cached, "input tokens from a cache"),
  ];
}

/** Every day of the period: one without use is a gap otherwise. */
function columnsOf({ items, from, to }) {
  const byDay = new Map(items.map((each) => [each.day, each]));
  const columns = [[], [], []];
  for (let at = Date.parse(from); at <= Date.parse(to); at += dayMs) {
    const { input_tokens: input = 0, output_tokens: output = 0 } =
      byDay.get(new Date(at).toISOString().slice(0, 10)) ?? {};
    columns[0].push(at / 1_000);
    // Drawn over one another: what shows of the first is the output.
    columns[1].push(input + output);
    columns[2].push(input);
  }
  return columns;
}

function tableOf(items, { from, to }) {
  if (items.length === 0) return faint(`No model was asked from ${from} to ${to}.`);
  const sorted = items.toSorted((a, b) => b.input_tokens + b.output_tokens - a.input_tokens - a.output_tokens);
  const rows = sorted.map(
    ({ key_id: key, principal, provider, model, requests, input_tokens: input, output_tokens: output }) => [
      visible(key ?? principal),
      visible(provider),
      visible(model),
      count(requests),
      count(input),
      count(output),
    ],
  );
  return table(
    `From ${from} to ${to}`,
    ["who", "provider", "model", "requests", "input tokens", "output tokens"],
    rows,
  );
}

/** Budgets with the part that is spent. */
export function budgetList(budgets) {
  const items = budgets.map(({ key, unit, limit, spent }) => {
    const name = key === null ? "the whole tenant" : visible(key);
    const text = `${count(spent)} of ${count(limit)} tokens this ${unit}`;
    return make(
      "li",
      "",
      `${name} `,
      make("span", "faint", text),
      meter(`tokens of ${name} this ${unit}`, spent, limit),
    );
  });
  return list(items, "No budget is configured (`usage.budgets`).");
}
