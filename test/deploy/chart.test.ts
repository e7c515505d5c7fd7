import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { parse, parseAllDocuments } from "yaml";
import { repositoryRoot } from "../check/source-tree.ts";
import { runCommand } from "../support/command-host.ts";
import { findHelm, type Helm } from "./helm.ts";

const folder = join(repositoryRoot, "core/cli/deploy");
const chart = join(folder, "chart");
const { version } = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8")) as { version: string };

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: { readonly template?: { readonly metadata: { readonly annotations?: object } } };
}

/** What Helm needs and `kubectl apply` does not. */
const ofHelm: ReadonlySet<string> = new Set(["checksum/config", "helm.sh/resource-policy"]);

/** The documents by kind and name, and the configuration in them as what it says. */
function readManifests(text: string): Readonly<Record<string, unknown>> {
  const documents = parseAllDocuments(text);
  expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).to.deep.equal([]);
  const manifests = documents.map((document) => document.toJS() as Manifest).filter((each) => each !== null);
  return Object.fromEntries(
    manifests.map((manifest) => {
      const plain = JSON.parse(JSON.stringify(manifest), (key, value) => {
        if (key === "imagePullPolicy") return undefined;
        if (key === "gateway.yaml") return parse(value as string);
        if (key !== "annotations") return value;
        const kept = Object.entries(value as object).filter(([name]) => !ofHelm.has(name));
        return kept.length === 0 ? undefined : Object.fromEntries(kept);
      });
      return [`${manifest.kind} ${manifest.metadata.name}`, plain];
    }),
  );
}

describe("the Helm chart", function () {
  this.timeout(120_000);
  let place: string;
  let helm: Helm;

  before(async () => {
    place = await mkdtemp(join(tmpdir(), "chart-"));
    helm = await findHelm(place);
  });

  after(() => rm(place, { recursive: true, force: true }));

  async function render(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await helm("template", "gateway", chart, "--namespace", "gateway", ...args);
    expect(code, stderr).to.equal(0);
    return stdout;
  }

  it("has no fault that Helm finds, and is of the package's version", async () => {
    const { code, stdout, stderr } = await helm("lint", "--strict", chart);
    expect(code, stdout + stderr).to.equal(0);
    const { version: own, appVersion } = parse(readFileSync(join(chart, "Chart.yaml"), "utf8"));
    expect([own, appVersion]).to.deep.equal([version, version]);
  });

  for (const [name, set] of [
    ["kubernetes.yaml", "replicas.enabled=false"],
    ["kubernetes-replicas.yaml", "replicas.enabled=true"],
  ] as const) {
    it(`renders what ${name} says, whose test is so the chart's as well`, async () => {
      const { "Namespace gateway": namespace, ...expected } = readManifests(readFileSync(join(folder, name), "utf8"));
      expect(namespace).to.not.equal(undefined);
      expect(readManifests(await render("--set", set))).to.deep.equal(expected);
    });
  }

  it("renders as many replicas as an operator sets, with a lease, a witness and volumes of theirs", async () => {
    const sets = [
      "replicas.enabled=true",
      "replicas.count=5",
      "replicas.databaseSecret=own-database",
      "volumes.storageClass=fast",
      "volumes.data=5Gi",
      "config.store.lease_ms=5000",
      "config.evidence.witnesses[0].name=outside",
    ];
    const manifests = readManifests(await render(...sets.flatMap((set) => ["--set", set])));
    const text = JSON.stringify(manifests["StatefulSet gateway"]);
    expect(text).to.include('"replicas":5').and.include('"secretRef":{"name":"own-database"}');
    expect(text).to.include('"storageClassName":"fast"').and.include('"storage":"5Gi"');
    const { data } = manifests["ConfigMap gateway"] as { readonly data: { readonly "gateway.yaml": object } };
    expect(data["gateway.yaml"]).to.deep.include({
      store: {
        engine: "postgres",
        url_env: "DATABASE_URL",
        secret_env: "REPLICA_SECRET",
        host_env: "POD_IP",
        lease_ms: 5000,
      },
      evidence: { witnesses: [{ name: "outside" }] },
    });
    expect(data["gateway.yaml"]).to.not.have.property("state");
  });

  it("keeps the volumes where the release is removed, and starts the gateway anew where its configuration changed", async () => {
    const annotationsOf = (text: string): readonly unknown[] => {
      const manifests = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
      const kept = manifests
        .filter(({ kind }) => kind === "PersistentVolumeClaim")
        .map(({ metadata }) => metadata.annotations);
      expect(kept).to.deep.equal(Array(2).fill({ "helm.sh/resource-policy": "keep" }));
      return manifests.flatMap(({ spec }) => spec?.template?.metadata.annotations ?? []);
    };
    const [first, same, other] = await Promise.all([
      render(),
      render("--set", "resources.limits.memory=3Gi"),
      render("--set", "config.mcp_gateway.require_auth=false"),
    ]);
    expect(annotationsOf(same ?? "")).to.deep.equal(annotationsOf(first ?? ""));
    expect(annotationsOf(other ?? "")).to.not.deep.equal(annotationsOf(first ?? ""));
  });

  it("takes what an operator sets, in a configuration that the gateway accepts", async () => {
    const own = join(place, "own.yaml");
    await writeFile(
      own,
      JSON.stringify({
        image: { repository: "images.example.com/gateway", tag: "2" },
        host: "mcp.example.com",
        extraHosts: ["agents.internal"],
        volumes: { storageClass: "fast", data: "5Gi" },
        ingress: { enabled: false },
        networkPolicy: { enabled: false },
        config: { evidence: { retention_days: 90 }, log: { level: "warn" } },
      }),
    );
    const args = ["template", "judge", chart, "--namespace", "safe", "--values", own];
    const { code, stdout, stderr } = await helm(...args);
    expect(code, stderr).to.equal(0);
    expect(stdout).to.include('image: "images.example.com/gateway:2"').and.include("storageClassName: fast");
    const manifests = readManifests(stdout);
    expect(Object.keys(manifests).toSorted()).to.deep.equal([
      "ConfigMap judge",
      "Deployment judge",
      "PersistentVolumeClaim judge-data",
      "PersistentVolumeClaim judge-mark",
      "Service judge",
      "Service judge-admin",
      "Service judge-metrics",
    ]);
    const { data } = manifests["ConfigMap judge"] as { readonly data: { readonly "gateway.yaml": object } };
    const config = data["gateway.yaml"];
    expect(config).to.deep.include({
      listen: {
        host: "0.0.0.0",
        admin_host: "0.0.0.0",
        allowed_hosts: ["mcp.example.com", "judge-admin.safe.svc", "judge-metrics.safe.svc", "agents.internal"],
      },
      evidence: {
        retention_days: 90,
        witnesses: [{ name: "mark", type: "file", path: "/var/lib/gateway-mark/witness" }],
      },
    });
    const file = join(place, "gateway.yaml");
    await writeFile(file, JSON.stringify(config).replaceAll("/opt/gateway", repositoryRoot));
    const keys = ["AGENT_KEY", "OPERATOR_KEY"].map((name) => [name, randomBytes(32).toString("base64url")]);
    const checked = await runCommand(["config", "check", file], Object.fromEntries(keys));
    expect(checked.code, checked.stdout + checked.stderr).to.equal(0);
  });

  it("refuses what it would not follow", async () => {
    for (const set of [
      "config.listen.host=127.0.0.1",
      "config.data_dir=/data",
      "config.state.enabled=false",
      "config.evidence.witnesses[0].name=other",
      "config.store.engine=postgres",
      "replicas=2",
      "replicas.count=1",
      "replicas.enabled=true,config.store.engine=leveldb",
      "replicas.enabled=true,config.state.mark=/mark",
      "host=bad host",
      "networkPolicy.operator=all",
    ]) {
      const { code, stderr } = await helm("template", "gateway", chart, "--set", set);
      expect(code, set).to.not.equal(0);
      expect(stderr, set).to.include("values don't meet the specifications of the schema");
    }
  });
});
