/**
 * The files of a pack that allows every action in every phase, below `folder`: for tests that are not about policy.
 * To be given to `startGateway` as `files`.
 */
export function allowEverything(folder: string): Readonly<Record<string, string>> {
  return {
    [`${folder}/pack.yaml`]: `apiVersion: gateway/v1
kind: PolicyPack
metadata:
  name: open
  version: 1.0.0
  title: Everything
  description: Allows every action.
  authors: [test]
  license: Apache-2.0
namespace: open
rules: ["rules/*.yaml"]
`,
    [`${folder}/rules/all.yaml`]: `rules:
  - id: open.all
    title: Everything is allowed
    decision: allow
    severity: info
    risk: 0
    match: { phase: [list, input, output] }
    message: allowed
`,
  };
}
