import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { parse, stringify } from "yaml";
import { repositoryRoot } from "../check/source-tree.ts";
import { askModel } from "../e2e/model/ask.ts";
import { openModelWorld } from "../e2e/model/world.ts";
import { echoCall, holdCall, openWorld, post } from "../e2e/wire/world.ts";
import { type Ran, runProgram } from "../support/program.ts";
import { selectionsOf } from "../support/promql.ts";
import { scrapeText } from "../support/scrape.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
}
interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}
interface RuleCase {
  readonly name: string;
  readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[];
}
interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}

const alerts = join(repositoryRoot, "core/observe/alerts");
const ruleFile = parse(readFileSync(join(alerts, "gateway.yaml"), "utf8")) as RuleFile;
const rules = ruleFile.groups.flatMap((group) => group.rules);
const caseFile = parse(readFileSync(join(alerts, "gateway.test.yaml"), "utf8")) as {
  readonly tests: readonly RuleCase[];
};
const dashboard = JSON.parse(readFileSync(join(repositoryRoot, "core/observe/grafana/gateway.json"), "utf8")) as {
  readonly panels: readonly Panel[];
};
const expressions = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));

/** Prometheus's own, and what it adds to every series. */
const given = { series: "up", labels: ["instance", "job"] };

describe("monitoring as it ships", function () {
  this.timeout(120_000);
  let folder: string;
  /** `/metrics` of a gateway between agents and MCP servers, and of one between agents and models. */
  let texts: readonly string[];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "monitoring-"));
    const tools = await openWorld();
    await post(tools, echoCall());
    await holdCall(tools);
    const models = await openModelWorld();
    await askModel(models);
    texts = await Promise.all([tools, models].map(({ gateway }) => scrapeText(gateway.metricsUrl)));
    await Promise.all([tools.stop(), models.stop()]);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  /** The labels of each series there is. */
  function knownSeries(): ReadonlyMap<string, ReadonlySet<string>> {
    const known = new Map([[given.series, new Set(given.labels)]]);
    const counted = texts.flatMap((text) => [...text.matchAll(/^([a-z]\w*)(?:\{(.*)\})? /gm)]);
    for (const [, name = "", pairs = ""] of counted) {
      const labels = known.get(name) ?? new Set(given.labels);
      for (const [, label = ""] of pairs.matchAll(/(\w+)="/g)) labels.add(label);
      known.set(name, labels);
    }
    const declared = texts.flatMap((text) => [...text.matchAll(/^# TYPE (\S+)/gm)]);
    // One that counts by a label has no series until something happens.
    for (const [, name = ""] of declared) if (!known.has(name)) known.set(name, new Set(given.labels));
    return known;
  }

  function strangersIn(named: readonly { readonly title: string; readonly expr: string }[]): readonly string[] {
    const known = knownSeries();
    return named.flatMap(({ title, expr }) =>
      selectionsOf(expr).flatMap(({ metric, labels }) => {
        const there = known.get(metric);
        if (there === undefined) return [`${title}: no series \`${metric}\``];
        return labels
          .filter((label) => !there.has(label))
          .map((label) => `${title}: \`${metric}\` has no \`${label}\``);
      }),
    );
  }

  /** Runs the cases of one alert, those that expect it or those that do not, against other rules. */
  async function judge(changed: RuleFile, alert: string, fires: boolean): Promise<Ran> {
    const tests = caseFile.tests.filter(({ alert_rule_test: [expected] }) => {
      return expected?.alertname === alert && expected.exp_alerts.length > 0 === fires;
    });
    expect(tests, `${alert} ${fires ? "fires" : "stays quiet"}`).to.have.length.above(0);
    await writeFile(join(folder, "rules.yaml"), stringify(changed));
    await writeFile(join(folder, "case.yaml"), stringify({ ...caseFile, rule_files: ["rules.yaml"], tests }));
    return runProgram("promtool", ["test", "rules", join(folder, "case.yaml")]);
  }

  function changeRule(alert: string, change: (rule: Rule) => readonly object[]): RuleFile {
    const changed = (rule: Rule): readonly object[] => (rule.alert === alert ? change(rule) : [rule]);
    return { groups: ruleFile.groups.map((group) => ({ ...group, rules: group.rules.flatMap(changed) as Rule[] })) };
  }

  describe("/metrics", () => {
    it("is read by Prometheus's own parser, which finds nothing to say", async () => {
      for (const text of texts) {
        expect(await runProgram("promtool", ["check", "metrics"], text)).to.deep.equal({
          code: 0,
          stdout: "",
          stderr: "",
        });
      }
    });

    it("would not be with a name against the conventions", async () => {
      const wrong = "# HELP gateway_things_total Things\n# TYPE gateway_things_total gauge\ngateway_things_total 1\n";
      expect((await runProgram("promtool", ["check", "metrics"], wrong)).code).to.equal(3);
    });
  });

  describe("the alert rules", () => {
    it("are sound, fire and stay quiet as their cases say", async () => {
      const checked = await runProgram("promtool", ["check", "rules", "--lint-fatal", join(alerts, "gateway.yaml")]);
      expect(checked.stdout).to.include(`SUCCESS: ${rules.length} rules found`);
      expect(checked.code).to.equal(0);
      const tested = await runProgram("promtool", ["test", "rules", join(alerts, "gateway.test.yaml")]);
      expect(tested.code, tested.stdout + tested.stderr).to.equal(0);
    });

    it("ask for series and labels that there are", () => {
      expect(strangersIn(rules.map(({ alert, expr }) => ({ title: alert, expr })))).to.deep.equal([]);
    });

    it("would be caught asking for others", () => {
      const expr = 'rate(gateway_nothing_total[5m]) / on (instance) gateway_upstreams{color="red"} > up';
      expect(strangersIn([{ title: "a", expr }])).to.deep.equal([
        "a: no series `gateway_nothing_total`",
        "a: `gateway_upstreams` has no `color`",
      ]);
    });

    for (const { alert } of rules) {
      it(`${alert}: has a case that needs it, and one that it must not fire in`, async () => {
        const gone = await judge(
          changeRule(alert, () => []),
          alert,
          true,
        );
        expect(gone.code, "without the rule").to.equal(1);
        const always = (rule: Rule): readonly object[] => [{ alert: rule.alert, expr: "vector(1)" }];
        const quiet = await judge(changeRule(alert, always), alert, false);
        expect(quiet.code, "with a rule that always fires").to.equal(1);
      });
    }
  });

  describe("the dashboard", () => {
    it("asks in words that Prometheus parses", async () => {
      const record = expressions.map(({ expr }, index) => ({
        record: `panel:${index}`,
        expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*"),
      }));
      const file = join(folder, "panels.yaml");
      await writeFile(file, stringify({ groups: [{ name: "panels", rules: record }] }));
      const { code, stdout, stderr } = await runProgram("promtool", ["check", "rules", file]);
      expect(code, stdout + stderr).to.equal(0);
      expect(stdout).to.include(`SUCCESS: ${expressions.length} rules found`);
    });

    it("asks for series and labels that there are", () => {
      expect(strangersIn(expressions)).to.deep.equal([]);
    });

    it("shows every metric of ours", () => {
      const ours = new Set(
        texts.flatMap((text) => [...text.matchAll(/^# TYPE (gateway_\S+)/gm)].map(([, name]) => name)),
      );
      const shown = expressions.flatMap(({ expr }) => selectionsOf(expr).map(({ metric }) => metric));
      const families = new Set(shown.map((metric) => metric.replace(/_(?:bucket|sum|count)$/, "")));
      expect([...ours].filter((name) => !families.has(name ?? ""))).to.deep.equal([]);
      expect(ours.size).to.be.above(30);
    });

    it("gives each panel a place and a number of its own", () => {
      const { panels } = dashboard;
      expect(new Set(panels.map(({ id }) => id)).size).to.equal(panels.length);
      const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
      );
      expect(new Set(cells).size).to.equal(cells.length);
      expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).to.equal(24);
    });
  });
});
