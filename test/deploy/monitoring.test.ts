import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { parse, stringify } from "yaml";
import { askModel } from "../e2e/model/ask.ts";
import { openModelWorld } from "../e2e/model/world.ts";
import { echoCall, holdCall, keys, messageHeaders, openWorld, post, type World } from "../e2e/wire/world.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import {
  type AlertRule,
  alertFolder,
  type Expression,
  panelExpressions,
  type RuleFile,
  readPanels,
  readRules,
  ruleExpressions,
  rulesIn,
} from "../support/monitoring.ts";
import { type Ran, runProgram } from "../support/program.ts";
import { selectionsOf } from "../support/promql.ts";
import { scrapeText } from "../support/scrape.ts";
import { send } from "../support/wire.ts";

interface RuleCase {
  readonly name: string;
  readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[];
}
const ruleFile = readRules();
const rules = rulesIn(ruleFile);
const caseFile = parse(readFileSync(join(alertFolder, "gateway.test.yaml"), "utf8")) as {
  readonly tests: readonly RuleCase[];
};
const expressions = panelExpressions();

/** Prometheus's own, and what it adds to every series. */
const given = { series: "up", labels: ["instance", "job"] };

describe("monitoring as it ships", () => {
  let folder: string;
  /** `/metrics` of a gateway between agents and MCP servers, and of one between agents and models. */
  let texts: readonly string[];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "monitoring-"));
    const tools = await openWorld();
    await post(tools, echoCall());
    await holdCall(tools);
    await killSession(tools);
    const models = await openModelWorld();
    await askModel(models);
    texts = await Promise.all([tools, models].map(({ gateway }) => scrapeText(gateway.metricsUrl)));
    await Promise.all([tools.stop(), models.stop()]);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  /** Stops a session, so that there is something to count. */
  async function killSession({ gateway }: World): Promise<void> {
    const [session] = await new EvidenceReader(gateway.adminUrl, keys.admin).sessions();
    const target = `/admin/v1/sessions/${session?.id}/kill`;
    const killed = await send(gateway.adminUrl, {
      method: "POST",
      target,
      headers: messageHeaders("admin"),
      body: "{}",
    });
    expect(killed.status, killed.body).to.equal(200);
  }

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

  function strangersIn(named: readonly Expression[]): readonly string[] {
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

  function changeRule(alert: string, change: (rule: AlertRule) => readonly object[]): RuleFile {
    const changed = (rule: AlertRule): readonly object[] => (rule.alert === alert ? change(rule) : [rule]);
    return {
      groups: ruleFile.groups.map((group) => ({ ...group, rules: group.rules.flatMap(changed) as AlertRule[] })),
    };
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
      const checked = await runProgram("promtool", [
        "check",
        "rules",
        "--lint-fatal",
        join(alertFolder, "gateway.yaml"),
      ]);
      expect(checked.stdout).to.include(`SUCCESS: ${rules.length} rules found`);
      expect(checked.code).to.equal(0);
      const tested = await runProgram("promtool", ["test", "rules", join(alertFolder, "gateway.test.yaml")]);
      expect(tested.code, tested.stdout + tested.stderr).to.equal(0);
    });

    it("ask for series and labels that there are", () => {
      expect(strangersIn(ruleExpressions())).to.deep.equal([]);
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
        const always = (rule: AlertRule): readonly object[] => [{ alert: rule.alert, expr: "vector(1)" }];
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

    it("gives each panel a place and a number of its own", () => {
      const panels = readPanels();
      expect(new Set(panels.map(({ id }) => id)).size).to.equal(panels.length);
      const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
      );
      expect(new Set(cells).size).to.equal(cells.length);
      expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).to.equal(24);
    });
  });
});
