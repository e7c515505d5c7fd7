import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { repositoryRoot } from "../check/source-tree.ts";

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
}

export interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly AlertRule[] }[];
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}

/** An expression of Prometheus's, and what it is for. */
export interface Expression {
  readonly title: string;
  readonly expr: string;
}

const observe = join(repositoryRoot, "core/observe");

/** Where the alert rules and their cases lie. */
export const alertFolder: string = join(observe, "alerts");

export function readRules(): RuleFile {
  return parse(readFileSync(join(alertFolder, "gateway.yaml"), "utf8")) as RuleFile;
}

export function rulesIn(file: RuleFile): readonly AlertRule[] {
  return file.groups.flatMap(({ rules }) => rules);
}

/** The panels of the dashboard. */
export function readPanels(): readonly Panel[] {
  const text = readFileSync(join(observe, "grafana/gateway.json"), "utf8");
  return (JSON.parse(text) as { readonly panels: readonly Panel[] }).panels;
}

export function panelExpressions(): readonly Expression[] {
  return readPanels().flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));
}

export function ruleExpressions(): readonly Expression[] {
  return rulesIn(readRules()).map(({ alert, expr }) => ({ title: alert, expr }));
}
