import { expect } from "chai";
import type { ActionEffect } from "../../../core/action/action-fact.ts";
import { effectAt, extendTable, isEffectKey, unstatedReason } from "../../../core/fact/effect-statement.ts";
import { shippedEffectTable } from "../../../core/fact/effect-table.ts";
import { loadShellParsers, readShell } from "../../../core/fact/shell/shell-line.ts";

const table = shippedEffectTable();

describe("extendTable(table, own)", () => {
  before(loadShellParsers);

  const effectOf = (line: string, own: Readonly<Record<string, ActionEffect>>): ActionEffect =>
    readShell(line, extendTable(table, own)).shell.effect;

  it("adds programs, subcommands and flags", () => {
    const own = {
      mytool: "write",
      "mytool ls": "read",
      "mytool ls --out": "write",
      "mytool db x -f": "delete",
    } as const;
    for (const [line, effect] of [
      ["mytool", "write"],
      ["mytool run", "write"],
      ["mytool ls", "read"],
      ["/usr/bin/mytool ls a b", "read"],
      ["mytool ls --out=a", "write"],
      ["mytool ls --ou a", "write"],
      ["mytool db x", "write"],
      ["mytool db x -qf", "delete"],
      ["mytool --verbose ls", "write"],
      ["./mytool ls", "execute"],
      ["mytool $x", "unknown"],
      ["mytool ls $(cat a)", "unknown"],
      ["mytool ls > a", "write"],
    ] as const) {
      expect(effectOf(line, own), line).to.equal(effect);
    }
  });

  it("keeps what the table says of other subcommands and flags", () => {
    expect(effectOf("docker rm x", { docker: "read" })).to.equal("delete");
    expect(effectOf("sort -o a b", { sort: "read" })).to.equal("write");
    expect(effectOf("kubectl delete pods", { "kubectl get": "read" })).to.equal("network");
    expect(effectOf("pip list -o", { "pip list": "read" })).to.equal("network");
  });

  it("makes an effect stricter by a flag, never weaker", () => {
    expect(effectOf("kubectl apply --dry-run", { "kubectl apply --dry-run": "read" })).to.equal("network");
    expect(effectOf("docker ps -x", { "docker ps -x": "network" })).to.equal("network");
  });

  it("leaves the given table as it is", () => {
    extendTable(table, { "kubectl get": "read" });
    expect(effectOf("kubectl get pods", {})).to.equal("network");
  });
});

describe("the keys of the operator's effects", () => {
  it("are a program, its subcommands and one flag, with single blanks", () => {
    for (const key of ["mytool", "kubectl get", "kubectl get --raw", "tool -x", "g++", "a b c d e f"])
      expect(isEffectKey(key), key).to.equal(true);
    for (const key of [
      "",
      " a",
      "a ",
      "a  b",
      "a\tb",
      "./a",
      "/bin/a",
      "a -xy",
      "a -x b",
      "a --",
      "__proto__",
      "a b c d e f g",
      "ä",
    ])
      expect(isEffectKey(key), key).to.equal(false);
  });

  it("are compared with exactly what the shipped table names", () => {
    for (const [key, effect] of [
      ["kubectl", "network"],
      ["kubectl get", undefined],
      ["docker rm", "delete"],
      ["docker rm x", undefined],
      ["pip list", "read"],
      ["pip list -o", "network"],
      ["sort -o", "write"],
      ["docker constructor", undefined],
      ["unheard", undefined],
    ] as const) {
      expect(effectAt(table, key), key).to.equal(effect);
    }
  });

  it("name no program that runs another one, or whose words code judges", () => {
    expect(["bash", "sudo -x", "xargs"].map((key) => unstatedReason(table, key))).to.deep.equal(
      Array(3).fill("wrapper"),
    );
    expect(["git status", "find", "sed -n"].map((key) => unstatedReason(table, key))).to.deep.equal(
      Array(3).fill("checked"),
    );
    expect(unstatedReason(table, "kubectl get")).to.equal(undefined);
  });
});
