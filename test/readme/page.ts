/**
 * The pages whose marked blocks run in a clean clone, in this order. Each has a shell of its own, and finds the gateway
 * that the last `start` block before it started: in local mode, up to the page that brings a configuration.
 */
export const testedPages: readonly string[] = [
  "README.md",
  "core/gateway/CONNECT.md",
  "core/approval/REVIEW.md",
  "core/explain/WHY.md",
  "core/evidence/CHECK.md",
  "core/observe/WATCH.md",
  "core/provider/MODELS.md",
  "core/manifest/DECLARE.md",
  "core/upstream/OWN-SERVER.md",
  "policy-packs/FIRST-PACK.md",
  "plugins/FIRST-PLUGIN.md",
  "plugins/C-AND-RUST.md",
];
