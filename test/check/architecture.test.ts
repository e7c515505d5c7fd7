import { expect } from "chai";
import {
  escapeFaults,
  hookFaults,
  lengthFaults,
  lengthSummary,
  makersMake,
  permissionFaults,
  readmeFaults,
} from "./convention.ts";
import {
  actionFaults,
  compositionFaults,
  cycleFaults,
  egressFaults,
  koaFaults,
  layerFaults,
  neighbourFaults,
  sdkFaults,
  threadFaults,
} from "./layer.ts";
import { readSourceTree, type SourceTree } from "./source-tree.ts";

const product = readSourceTree(["core", "sdk", "plugins"], [".ts", "README.md"]);
const everything = readSourceTree(["core", "sdk", "plugins", "test"], [".ts"]);

function tree(files: Readonly<Record<string, string>>): SourceTree {
  return new Map(Object.entries(files));
}

describe("the architecture", () => {
  it("is read from a tree that is there", () => {
    expect([...product.keys()])
      .to.include("core/action/envelope.ts")
      .and.to.include("core/road/authorize.ts");
  });

  describe("layers", () => {
    it("point down, and neighbours import one another in no circle", () => {
      expect(layerFaults(product)).to.deep.equal([]);
      expect(neighbourFaults(product)).to.deep.equal([]);
    });

    it("see an import that points up, however it is written", () => {
      const upwards = {
        "core/action/a.ts": 'import type { Road } from "../road/run.ts";',
        "core/policy/b.ts": 'export { Road } from "../road/run.ts";',
        "core/road/c.ts": 'const app = await import("../http/app.ts");',
        "core/store/d.ts": 'import "../compose/gateway.ts";',
        "core/http/e.ts": 'import {\n  serve,\n} from "../cli/serve.ts";',
      };
      expect(layerFaults(tree(upwards))).to.deep.equal([
        "core/action/a.ts: imports core/road/run.ts, which is above it",
        "core/policy/b.ts: imports core/road/run.ts, which is above it",
        "core/road/c.ts: imports core/http/app.ts, which is above it",
        "core/store/d.ts: imports core/compose/gateway.ts, which is above it",
        "core/http/e.ts: imports core/cli/serve.ts, which is above it",
      ]);
    });

    it("see circles of neighbours, unknown places and names nobody can read", () => {
      const neighbours = {
        "core/kill/a.ts": 'import type { Book } from "../session/book.ts";',
        "core/session/b.ts": 'import type { Kill } from "../kill/kill.ts";',
        "core/ticket/c.ts": 'import type { Kill } from "../kill/kill.ts";',
      };
      expect(neighbourFaults(tree(neighbours))).to.deep.equal([
        "core/kill: imports itself through its neighbours",
        "core/session: imports itself through its neighbours",
      ]);
      const files = {
        "core/common/b.ts": "export const b = 1;\nimport { x } from './x.ts';",
        "core/http/c.ts": 'import { fake } from "../../test/fake.ts";',
        "core/cli/d.ts": "await import(name);",
      };
      expect(layerFaults(tree(files))).to.deep.equal([
        "core/common/b.ts: is in no folder of the design",
        "core/http/c.ts: imports test/fake.ts, which is in no folder of the design",
        "core/cli/d.ts: imports a module whose name is computed",
      ]);
    });

    it("let through what points down, stays in its folder, or comes from a package or the sdk", () => {
      const files = {
        "core/compose/gateway.ts":
          'import { openStore } from "../store/open.ts";\nimport { buildApp } from "../http/app.ts";',
        "core/gateway/mcp/service.ts": 'import type { Road } from "../../road/run.ts";\nimport Koa from "koa";',
        "core/plugin/load.ts": 'import { abi } from "../../sdk/abi.ts";\nimport { row } from "./row.ts";',
      };
      expect(layerFaults(tree(files))).to.deep.equal([]);
    });
  });

  describe("core/action", () => {
    it("does nothing but compute", () => {
      expect(actionFaults(product)).to.deep.equal([]);
    });

    it("may not reach for the world, the clock or chance", () => {
      const files = {
        "core/action/a.ts":
          'import { readFileSync } from "node:fs";\nimport net from "node:net";\nimport level from "level";',
        "core/action/b.ts": "/** Runs in any process. */\nexport const now = () => Date.now() + new Date().getTime();",
        "core/action/c.ts": 'import { randomBytes } from "node:crypto";\nsetTimeout(wake, 1);\nprocess.exit();',
        "core/action/d.ts": "export const day = (ms: number) => new Date(ms).toISOString();",
      };
      expect(actionFaults(tree(files))).to.deep.equal([
        "core/action/a.ts: imports `node:fs`",
        "core/action/a.ts: imports `node:net`",
        "core/action/a.ts: imports `level`",
        "core/action/b.ts: uses `Date.now`",
        "core/action/b.ts: uses `new Date()`",
        "core/action/c.ts: uses `randomBytes`",
        "core/action/c.ts: uses `setTimeout`",
        "core/action/c.ts: uses `process`",
      ]);
    });
  });

  describe("Koa", () => {
    it("lives in the folders that serve ports and nowhere else", () => {
      expect(koaFaults(product)).to.deep.equal([]);
    });

    it("is seen elsewhere, its router and its types too", () => {
      const files = {
        "core/http/app.ts": 'import Koa from "koa";',
        "core/road/a.ts": 'import type { Context } from "koa";',
        "core/compose/gateway.ts": 'import Router from "@koa/router";',
      };
      expect(koaFaults(tree(files))).to.deep.equal([
        "core/road/a.ts: imports `koa`",
        "core/compose/gateway.ts: imports `@koa/router`",
      ]);
    });
  });

  describe("connections", () => {
    it("are opened by way of core/egress", () => {
      expect(egressFaults(product)).to.deep.equal([]);
    });

    it("are seen where they are not", () => {
      const files = {
        "core/upstream/a.ts":
          'import { Pool } from "undici";\nnew Pool("http://a", { connect: egress.connector(url, 1) });',
        "core/upstream/b.ts": 'import { type Dispatcher, request } from "undici";',
        "core/upstream/c.ts": 'import type { Dispatcher } from "undici";',
        "core/notify/d.ts": 'import { isIP, connect } from "node:net";',
        "core/notify/e.ts": 'export const f = () => fetch(url, { redirect: "error" });',
        "core/cli/f.ts": 'export const f = () => fetch(url, { redirect: "error" });',
        "core/cli/g.ts": "export const f = () => fetch(url);",
        "core/cli/h.ts": 'import { WebSocket } from "ws";\nnew WebSocket(url, { followRedirects: false });',
        "core/cli/i.ts": 'import { WebSocket } from "ws";\nnew WebSocket(url);',
      };
      expect(egressFaults(tree(files))).to.deep.equal([
        "core/upstream/b.ts: gives no `egress.connector` to undici",
        "core/notify/d.ts: opens connections with `connect` of `node:net`",
        "core/notify/e.ts: calls `fetch`",
        "core/cli/g.ts: calls `fetch`",
        "core/cli/i.ts: opens connections with `WebSocket` of `ws`",
      ]);
    });
  });

  describe("the sdk", () => {
    it("stands alone", () => {
      expect(sdkFaults(product)).to.deep.equal([]);
    });

    it("may not lean on core", () => {
      const files = { "sdk/plugin.ts": 'import type { Verdict } from "../core/action/policy.ts";\nimport "./abi.ts";' };
      expect(sdkFaults(tree(files))).to.deep.equal(["sdk/plugin.ts: imports core/action/policy.ts"]);
    });
  });

  describe("the threads of plugins", () => {
    it("load no package", () => {
      expect(threadFaults(product)).to.deep.equal([]);
    });

    it("are followed to what they load, but not to what they name as a type", () => {
      const files = {
        "core/policy/test-worker.ts":
          'import { type Order, run } from "./run.ts";\nimport { env } from "node:process";',
        "core/policy/run.ts": 'import type { Node } from "yaml";\nimport { check } from "../config/check.ts";',
        "core/config/check.ts": 'import { Ajv } from "ajv";',
        "core/policy/other.ts": 'import { parse } from "yaml";',
      };
      expect(threadFaults(tree(files))).to.deep.equal(["core/config/check.ts: loads `ajv` in a thread"]);
    });
  });

  describe("an AuthorizedAction, an ApprovalGrant and a VerifiedExtension", () => {
    it("are made by the gate, the queue and the verifier alone", () => {
      expect(permissionFaults(product)).to.deep.equal([]);
      expect(makersMake(product)).to.equal(true);
    });

    it("is seen when made elsewhere, by whatever spelling", () => {
      const files = {
        "core/upstream/a.ts": "AuthorizedAction.authorize(action, evaluation, durable);",
        "core/upstream/b.ts": 'AuthorizedAction["authorize"](action);',
        "core/upstream/c.ts": "const { authorize: make } = AuthorizedAction;",
        "core/upstream/d.ts": "const make = (0, AuthorizedAction)\n  .authorize;",
        "core/upstream/e.ts": "new AuthorizedAction(action, evaluation); AuthorizedAction.spend(permission);",
        "core/road/authorize.ts": "return AuthorizedAction.authorize(action, evaluation, durable);",
        "core/approval/review.ts": "ApprovalGrant.grantUse(id, action);",
        "core/approval/queue.ts": "ApprovalGrant.grantUse(id, action);",
        "core/policy/pack.ts": "VerifiedExtension.admitTrusted(files, vouching);",
        "core/road/load.ts": "VerifiedExtension.admitUnverified(files, vouching);",
        "core/trust/verifier.ts": "VerifiedExtension.admitTrusted(files, vouching);",
      };
      expect(permissionFaults(tree(files))).to.deep.equal([
        ...["a", "b", "c", "d"].map((name) => `core/upstream/${name}.ts: calls \`authorize\``),
        "core/approval/review.ts: calls `grantUse`",
        "core/policy/pack.ts: calls `admitTrusted`",
        "core/road/load.ts: calls `admitUnverified`",
      ]);
    });
  });

  describe("the parts below the road", () => {
    it("are made by the composition root and the command line alone", () => {
      expect(compositionFaults(product)).to.deep.equal([]);
    });

    it("are seen when the road or a port makes its own", () => {
      const files = {
        "core/http/a.ts": 'import { KeyRing } from "../identity/key-ring.ts";\nconst ring = new KeyRing([]);',
        "core/road/b.ts": 'import { openStore } from "../store/open.ts";\nconst store = await openStore(dir);',
        "core/http/c.ts": 'import type { KeyRing } from "../identity/key-ring.ts";\nclass Access { ring: KeyRing }',
        "core/compose/gateway.ts": 'import { KeyRing } from "../identity/key-ring.ts";\nconst ring = new KeyRing([]);',
      };
      expect(compositionFaults(tree(files))).to.deep.equal([
        "core/http/a.ts: makes its own part with `KeyRing`",
        "core/road/b.ts: makes its own part with `openStore`",
      ]);
    });
  });

  describe("imports", () => {
    it("go in no circle", () => {
      expect(cycleFaults(product)).to.deep.equal([]);
    });

    it("are followed around a circle, even one of types", () => {
      const files = {
        "core/policy/a.ts": 'import { b } from "./b.ts";',
        "core/policy/b.ts": 'import { c } from "./inner/c.ts";',
        "core/policy/inner/c.ts": 'import type { A } from "../a.ts";',
      };
      expect(cycleFaults(tree(files))).to.deep.equal([
        "core/policy/a.ts → core/policy/b.ts → core/policy/inner/c.ts → core/policy/a.ts",
      ]);
    });
  });

  describe("files", () => {
    it("stay short", function () {
      if (this.test !== undefined) this.test.title += ` (core: ${lengthSummary(product)})`;
      expect(lengthFaults(product)).to.deep.equal([]);
    });

    it("are too long from 401 lines on", () => {
      const lines = (count: number): string => "line\n".repeat(count);
      const files = tree({ "core/policy/a.ts": lines(400), "core/policy/b.ts": lines(401) });
      expect(lengthFaults(files)).to.deep.equal(["core/policy/b.ts: has 401 lines, expected at most 400"]);
      expect(lengthSummary(files)).to.equal("2 files, lines: median 400, p90 400, longest 401");
    });

    it("take no way around the tools", () => {
      expect(escapeFaults(everything)).to.deep.equal([]);
    });

    it("are caught taking one", () => {
      const any = "any"; // spelt apart, so that this file is not caught
      const files = {
        "core/a.ts": `const x = y as ${any};`,
        "core/b.ts": `// @ts-${"ignore"}`,
        "core/c.ts": `// biome-${"ignore"} lint: no`,
        "test/d.ts": `it.${"only"}("x"); describe.${"skip"}("y");`,
        "test/e.ts": `// ${"TO"}DO: later`,
        "core/f.ts": "// read as any client would read it",
      };
      expect(escapeFaults(tree(files))).to.deep.equal([
        `core/a.ts: says \`as ${any}\``,
        `core/b.ts: says \`@ts-${"ignore"}\``,
        `core/c.ts: says \`biome-${"ignore"}\``,
        `test/d.ts: says \`it.${"only"}\``,
        `test/d.ts: says \`describe.${"skip"}\``,
        `test/e.ts: says \`${"TO"}DO\``,
      ]);
    });
  });

  describe("hooks", () => {
    it("stand in a suite", () => {
      expect(hookFaults(everything)).to.deep.equal([]);
    });

    it("are seen outside of any", () => {
      const files = { "test/a.test.ts": "beforeEach(() => {});", "test/b.test.ts": "  after(() => {});" };
      expect(hookFaults(tree(files))).to.deep.equal(["test/a.test.ts: `beforeEach` in no suite"]);
    });
  });

  describe("folders of core", () => {
    it("are described where they lie", () => {
      expect(readmeFaults(product)).to.deep.equal([]);
    });

    it("are caught without a README", () => {
      const files = {
        "core/policy/a.ts": "",
        "core/store/b.ts": "",
        "core/store/README.md": "",
        "core/gateway.ts": "",
      };
      expect(readmeFaults(tree(files))).to.deep.equal(["core/policy: has no README.md"]);
    });
  });
});
