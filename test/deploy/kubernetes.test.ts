import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { parse, parseAllDocuments } from "yaml";
import { repositoryRoot } from "../check/source-tree.ts";
import { type Ran, runProgram } from "../support/program.ts";
import { parseContainerfile } from "./container-build.ts";

interface Port {
  readonly name: string;
  readonly containerPort: number;
}
interface Probe {
  readonly httpGet: {
    readonly path: string;
    readonly port: string;
    readonly httpHeaders: readonly { readonly name: string; readonly value: string }[];
  };
}
interface Container {
  readonly envFrom: readonly unknown[];
  readonly ports: readonly Port[];
  readonly securityContext: object;
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}
interface Deployment {
  readonly replicas: number;
  readonly strategy: object;
  readonly selector: { readonly matchLabels: object };
  readonly template: {
    readonly metadata: { readonly labels: object };
    readonly spec: {
      readonly automountServiceAccountToken: boolean;
      readonly terminationGracePeriodSeconds: number;
      readonly securityContext: {
        readonly runAsNonRoot: boolean;
        readonly runAsUser: number;
        readonly runAsGroup: number;
      };
      readonly containers: readonly [Container];
      readonly volumes: readonly { readonly name: string; readonly [source: string]: unknown }[];
    };
  };
}
interface Service {
  readonly selector: object;
  readonly ports: readonly [{ readonly port: number; readonly targetPort: string }];
}
interface NetworkPolicy {
  readonly podSelector: { readonly matchLabels: object };
  readonly policyTypes: readonly string[];
  readonly ingress: readonly {
    readonly from: readonly unknown[];
    readonly ports: readonly [{ readonly port: string }];
  }[];
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: unknown;
}
interface GatewayFile {
  readonly listen: { readonly allowed_hosts: readonly string[] };
  readonly data_dir: string;
  readonly state: { readonly mark: string };
  readonly evidence: { readonly witnesses: readonly { readonly path: string }[] };
  readonly keys: readonly { readonly key_env: string }[];
}

const folderOfFiles = join(repositoryRoot, "core/cli/deploy");
const documents = parseAllDocuments(readFileSync(join(folderOfFiles, "kubernetes.yaml"), "utf8"));
const manifests = documents.map((document) => document.toJS() as Manifest);

function specOf<Spec>(kind: string, name: string): Spec {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
  if (found === undefined) throw new Error(`expected a ${kind} \`${name}\``);
  return found.spec as Spec;
}

const deployment = specOf<Deployment>("Deployment", "gateway");
const pod = deployment.template.spec;
const [container] = pod.containers;
const configText = manifests.find(({ kind }) => kind === "ConfigMap")?.data?.["gateway.yaml"] ?? "";
const config = parse(configText) as GatewayFile;
const cli = fileURLToPath(new URL("../../core/cli/main.js", import.meta.url));

describe("the Kubernetes manifests", () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "kubernetes-"));
  });

  after(() => rm(folder, { recursive: true, force: true }));

  /** What `gateway config check` says of the configuration, with the packs where they are here. */
  async function checkConfig(env: Readonly<Record<string, string>>): Promise<Ran> {
    const file = join(folder, "gateway.yaml");
    await writeFile(file, configText.replaceAll("/opt/gateway", repositoryRoot));
    return runProgram(process.execPath, [cli, "config", "check", file], "", env);
  }

  it("hold a configuration that the gateway takes, once the Secret holds the keys", async () => {
    const names = config.keys.map(({ key_env: name }) => name);
    const keys = Object.fromEntries(names.map((name) => [name, randomBytes(32).toString("base64url")]));
    const { code, stderr } = await checkConfig(keys);
    expect(code, stderr).to.equal(0);
    const without = await checkConfig({});
    expect(without.code).to.equal(1);
    for (const name of names) expect(without.stdout + without.stderr).to.include(name);
    expect(container.envFrom).to.deep.equal([{ secretRef: { name: "gateway-keys" } }]);
  });

  it("never run two on one data folder, and give one time to end", () => {
    expect([deployment.replicas, deployment.strategy]).to.deep.equal([1, { type: "Recreate" }]);
    expect(specOf<{ accessModes: unknown }>("PersistentVolumeClaim", "gateway-data").accessModes).to.deep.equal([
      "ReadWriteOncePod",
    ]);
    expect(pod.terminationGracePeriodSeconds).to.be.above(15 + 10);
  });

  it("run it without rights, as the image does, on a root that it cannot write", () => {
    const [user, group] = (
      parseContainerfile(readFileSync(join(folderOfFiles, "Containerfile"), "utf8")).findLast(
        ({ word }) => word === "USER",
      )?.rest ?? ""
    )
      .split(":")
      .map(Number);
    const { runAsNonRoot, runAsUser, runAsGroup } = pod.securityContext;
    expect([runAsNonRoot, runAsUser, runAsGroup]).to.deep.equal([true, user, group]);
    expect(container.securityContext).to.deep.equal({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(pod.automountServiceAccountToken).to.equal(false);
    const writable = container.volumeMounts
      .filter(({ readOnly }) => readOnly !== true)
      .map(({ mountPath }) => mountPath);
    expect(writable).to.deep.equal(["/var/lib/gateway", "/var/lib/gateway-mark", "/tmp"]);
    expect(config.data_dir).to.match(/^\/var\/lib\/gateway\//);
    expect(container.volumeMounts.map(({ name }) => name)).to.have.members(pod.volumes.map(({ name }) => name));
  });

  it("keep the mark and the notes of the witness on another volume than the data [S46]", () => {
    const claimOf = (path: string): unknown => {
      const mount = container.volumeMounts.find(({ mountPath }) => path.startsWith(`${mountPath}/`));
      const volume = pod.volumes.find(({ name }) => name === mount?.name);
      return (volume?.persistentVolumeClaim as { readonly claimName: string } | undefined)?.claimName;
    };
    const apart = [config.state.mark, ...config.evidence.witnesses.map(({ path }) => path)].map(claimOf);
    expect(claimOf(config.data_dir)).to.equal("gateway-data");
    expect(apart).to.deep.equal(["gateway-mark", "gateway-mark"]);
    for (const name of ["gateway-data", "gateway-mark"]) specOf("PersistentVolumeClaim", name);
  });

  it("ask for its health at a port and by a host that it answers to", () => {
    for (const { httpGet } of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
      expect([httpGet.path, httpGet.port]).to.deep.equal(["/health", "gateway"]);
      const [{ name, value } = { name: "", value: "" }] = httpGet.httpHeaders;
      expect(name).to.equal("Host");
      expect(config.listen.allowed_hosts).to.include(value);
    }
  });

  it("lead each service to its port, by a name that the gateway answers to", () => {
    const ports = new Map(container.ports.map(({ name, containerPort }) => [name, containerPort]));
    expect([...ports]).to.deep.equal([
      ["gateway", 8080],
      ["admin", 8081],
      ["metrics", 8082],
    ]);
    for (const [service, target] of [
      ["gateway", "gateway"],
      ["gateway-admin", "admin"],
      ["gateway-metrics", "metrics"],
    ] as const) {
      const {
        selector,
        ports: [port],
      } = specOf<Service>("Service", service);
      expect(selector).to.deep.equal(deployment.template.metadata.labels);
      expect([port.targetPort, port.port]).to.deep.equal([target, ports.get(target)]);
      if (service !== "gateway") expect(config.listen.allowed_hosts).to.include(`${service}.gateway.svc`);
    }
    expect(deployment.selector.matchLabels).to.deep.equal(deployment.template.metadata.labels);
  });

  it("let each port be reached from one place, and no other", () => {
    const { podSelector, policyTypes, ingress } = specOf<NetworkPolicy>("NetworkPolicy", "gateway");
    expect(podSelector.matchLabels).to.deep.equal(deployment.template.metadata.labels);
    expect(policyTypes).to.include("Ingress");
    expect(ingress.map(({ ports: [{ port }] }) => port)).to.deep.equal(["gateway", "admin", "metrics"]);
    for (const { from } of ingress) expect(from).to.have.length(1);
    expect(new Set(ingress.map(({ from }) => JSON.stringify(from))).size).to.equal(3);
    const outside = JSON.stringify(specOf("Ingress", "gateway"));
    expect(outside).to.not.match(/admin|metrics/);
  });

  it("hold no secret", () => {
    expect(manifests.map(({ kind }) => kind)).to.not.include("Secret");
    expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).to.deep.equal([]);
  });
});
