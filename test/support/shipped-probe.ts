import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { repositoryRoot } from "../check/source-tree.ts";

interface ExecProbe {
  readonly exec: { readonly command: readonly string[] };
  readonly timeoutSeconds: number;
}

interface HttpProbe {
  readonly httpGet: { readonly path: string };
  readonly timeoutSeconds: number;
}

interface Manifest {
  readonly kind: string;
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly [{ readonly livenessProbe: ExecProbe; readonly readinessProbe: HttpProbe }];
      };
    };
  };
}

/** The probes of `kubernetes-replicas.yaml`, as a kubelet runs them. */
const [{ livenessProbe, readinessProbe }] = (() => {
  const text = readFileSync(join(repositoryRoot, "core/cli/deploy/kubernetes-replicas.yaml"), "utf8");
  const found = parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest)
    .find(({ kind }) => kind === "StatefulSet");
  if (found === undefined) throw new Error("expected a StatefulSet");
  return found.spec.template.spec.containers;
})();

/** Returns whether a replica passes its liveness probe; `port`: at which it takes what other replicas forward. */
export function isAlive(port: number): Promise<boolean> {
  const [program = "", ...args] = livenessProbe.exec.command.map((arg) => arg.replace("8083", String(port)));
  const timeout = livenessProbe.timeoutSeconds * 1_000;
  return new Promise((resolve) => {
    execFile(program, args, { timeout, killSignal: "SIGKILL" }, (error) => resolve(error === null));
  });
}

/** Returns the status that a readiness probe gets at a gateway port; undefined where it gets none in its time. */
export function probeReadiness(url: string): Promise<number | undefined> {
  const timeout = readinessProbe.timeoutSeconds * 1_000;
  return new Promise((resolve) => {
    const request = get(new URL(readinessProbe.httpGet.path, url), {
      agent: false,
      signal: AbortSignal.timeout(timeout),
    });
    request.once("error", () => resolve(undefined));
    request.once("response", (response) => {
      response.resume();
      resolve(response.statusCode);
    });
  });
}
