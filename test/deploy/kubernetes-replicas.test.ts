import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { parse, parseAllDocuments } from "yaml";
import { repositoryRoot } from "../check/source-tree.ts";
import { runCommand } from "../support/command-host.ts";

const folderOfFiles = join(repositoryRoot, "core/cli/deploy");

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: unknown;
}
interface Container {
  readonly image: string;
  readonly envFrom: readonly { readonly secretRef: { readonly name: string } }[];
  readonly env?: readonly { readonly name: string; readonly valueFrom: object }[];
  readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: object;
  readonly readinessProbe: {
    readonly httpGet: object;
    readonly periodSeconds: number;
    readonly failureThreshold: number;
  };
  readonly livenessProbe: { readonly exec: object };
  readonly startupProbe: { readonly exec: object };
  readonly resources: object;
  readonly volumeMounts: readonly { readonly name: string }[];
}
interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext: object;
  readonly automountServiceAccountToken: boolean;
  readonly topologySpreadConstraints: readonly { readonly labelSelector: object }[];
  readonly containers: readonly [Container];
  readonly volumes: readonly { readonly name: string }[];
}
interface Workload {
  readonly replicas: number;
  readonly serviceName: string;
  readonly selector: object;
  readonly template: { readonly metadata: { readonly labels: object }; readonly spec: Pod };
  readonly volumeClaimTemplates: readonly { readonly metadata: { readonly name: string } }[];
}
interface GatewayFile {
  readonly store: { readonly url_env: string; readonly secret_env: string; readonly host_env: string };
  readonly keys: readonly { readonly key_env: string }[];
}

const documents = parseAllDocuments(readFileSync(join(folderOfFiles, "kubernetes-replicas.yaml"), "utf8"));
const manifests = documents.map((document) => document.toJS() as Manifest);
const single = parseAllDocuments(readFileSync(join(folderOfFiles, "kubernetes.yaml"), "utf8")).map(
  (document) => document.toJS() as Manifest,
);

function specOf<Spec>(kind: string, name = "gateway", among = manifests): Spec {
  const found = among.find((each) => each.kind === kind && each.metadata.name === name);
  if (found === undefined) throw new Error(`expected a ${kind} \`${name}\``);
  return found.spec as Spec;
}

const workload = specOf<Workload>("StatefulSet");
const { spec: pod, metadata } = workload.template;
const [container] = pod.containers;
const selector = { matchLabels: metadata.labels };
const configText = manifests.find(({ kind }) => kind === "ConfigMap")?.data?.["gateway.yaml"] ?? "";
const config = parse(configText) as GatewayFile;

describe("the Kubernetes manifests of replicas", function () {
  this.timeout(60_000);
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "kubernetes-replicas-"));
  });

  after(() => rm(folder, { recursive: true, force: true }));

  it("hold a configuration that the gateway takes, once the Secrets and the pod's address are there", async () => {
    const file = join(folder, "gateway.yaml");
    await writeFile(file, configText.replaceAll("/opt/gateway", repositoryRoot));
    const keys = config.keys.map(({ key_env: name }) => [name, randomBytes(32).toString("base64url")]);
    const { url_env: url, secret_env: secret, host_env: host } = config.store;
    const env = { [url]: "postgres://database/gateway", [secret]: randomBytes(32).toString("hex"), [host]: "10.0.0.1" };
    const { code, stdout, stderr } = await runCommand(["config", "check", file], {
      ...Object.fromEntries(keys),
      ...env,
    });
    expect(code, stdout + stderr).to.equal(0);
    for (const name of [url, secret]) {
      const without = await runCommand(["config", "check", file], { ...Object.fromEntries(keys), ...env, [name]: "" });
      expect(without.code, name).to.equal(1);
      expect(without.stdout + without.stderr).to.include(name);
    }
    expect(container.envFrom.map(({ secretRef: { name } }) => name)).to.deep.equal([
      "gateway-keys",
      "gateway-database",
    ]);
    expect(container.env).to.deep.equal([{ name: host, valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }]);
    expect(manifests.map(({ kind }) => kind)).to.not.include("Secret");
    expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).to.deep.equal([]);
  });

  it("run three, on machines of their own while there are enough, of which one at a time may go", () => {
    expect(workload.replicas).to.equal(3);
    expect(workload.selector).to.deep.equal(selector);
    for (const { labelSelector } of pod.topologySpreadConstraints) expect(labelSelector).to.deep.equal(selector);
    expect(specOf("PodDisruptionBudget")).to.deep.equal({ maxUnavailable: 1, selector });
  });

  it("give each a volume of its own, and the rights and resources of one gateway", () => {
    const names = [
      ...workload.volumeClaimTemplates.map(({ metadata: { name } }) => name),
      ...pod.volumes.map(({ name }) => name),
    ];
    expect(container.volumeMounts.map(({ name }) => name)).to.have.members(names);
    expect(workload.volumeClaimTemplates.map(({ metadata: { name } }) => name)).to.deep.equal(["data"]);
    const other = specOf<Workload>("Deployment", "gateway", single).template.spec;
    const [one] = other.containers;
    expect(pod.securityContext).to.deep.equal(other.securityContext);
    expect(pod.automountServiceAccountToken).to.equal(false);
    expect(container.securityContext).to.deep.equal(one.securityContext);
    expect([container.image, container.resources]).to.deep.equal([one.image, one.resources]);
    expect(container.readinessProbe.httpGet).to.deep.equal(one.readinessProbe.httpGet);
  });

  it("open the port of replicas to replicas alone, and each other port to whom one gateway opens it", () => {
    const port = container.ports.find(({ name }) => name === "replica")?.containerPort;
    expect(port).to.equal(8083);
    const { ingress } = specOf<{ ingress: readonly object[] }>("NetworkPolicy");
    const { ingress: others } = specOf<{ ingress: readonly object[] }>("NetworkPolicy", "gateway", single);
    expect(ingress).to.deep.equal([
      ...others,
      { from: [{ podSelector: selector }], ports: [{ protocol: "TCP", port: "replica" }] },
    ]);
    expect(specOf("Service", workload.serviceName)).to.deep.equal({
      clusterIP: "None",
      selector: metadata.labels,
      ports: [{ name: "replica", port: 8083, targetPort: "replica" }],
    });
    for (const name of ["gateway", "gateway-admin", "gateway-metrics"])
      expect(specOf("Service", name), name).to.deep.equal(specOf("Service", name, single));
    expect(specOf("Ingress")).to.deep.equal(specOf("Ingress", "gateway", single));
  });

  it("keep the Services' addresses as long as a connection waits for an owner, and leave time to stop", () => {
    const { periodSeconds, failureThreshold } = container.readinessProbe;
    expect(periodSeconds * failureThreshold).to.equal(10 + 15);
    expect(container.startupProbe.exec).to.deep.equal(container.livenessProbe.exec);
    const [program, seconds] = container.lifecycle?.preStop.exec.command ?? [];
    expect(program).to.equal("sleep");
    expect(pod.terminationGracePeriodSeconds).to.be.above(Number(seconds) + 15 + 10);
  });
});
