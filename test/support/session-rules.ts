import { siteFiles } from "./site.ts";

/**
 * The pack of `siteFiles`, with rules about what sessions do: a call with `risky` adds 10 to the risk of its session, one
 * with `tainting` taints it, and one with `limited` is blocked once the session did five things. The answer to one with
 * `revealing` adds 30.
 */
export function sessionFiles(): Readonly<Record<string, string>> {
  return {
    ...siteFiles(),
    "packs/open/rules/session.yaml": `rules:
  - id: open.risky
    title: Risky calls add to the risk
    decision: allow
    severity: info
    risk: 0
    session_risk: 10
    match: { phase: input, tool: echo }
    when: has(args.risky)
    message: risky
  - id: open.tainting
    title: Tainting calls taint
    decision: allow
    severity: info
    risk: 0
    taints: [seen]
    match: { phase: input, tool: echo }
    when: has(args.tainting)
    message: tainting
  - id: open.revealing
    title: Answers that reveal add to the risk
    decision: allow
    severity: info
    risk: 0
    session_risk: 30
    match: { phase: output, tool: echo }
    when: has(args.revealing)
    message: it reveals
  - id: open.limited
    title: Five actions are enough
    decision: block
    severity: low
    risk: 0
    match: { phase: input, tool: echo }
    when: has(args.limited) && session_state.actions >= 5.0
    message: it did enough
`,
  };
}
