import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { repositoryRoot } from "../check/source-tree.ts";
import { runProgram } from "../support/program.ts";
import { type DoctorWorld, openDoctorWorld } from "../unit/cli/doctor/world.ts";
import { parseContainerfile } from "./container-build.ts";
import { writtenPlaces } from "./written-place.ts";

const folder = join(repositoryRoot, "core/cli/deploy");
const file = join(folder, "compose.yaml");
const containerfile = readFileSync(join(folder, "Containerfile"), "utf8");
const { version } = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8")) as { version: string };

interface Service {
  readonly image: string;
  readonly user: string;
  readonly read_only: boolean;
  readonly ports: readonly string[];
  readonly volumes: readonly string[];
  readonly healthcheck: { readonly test: readonly string[] };
}

describe("the compose file", function () {
  this.timeout(60_000);
  let service: Service;
  let world: DoctorWorld;

  before(async () => {
    // Debian's docker-compose refuses what its schema does not know, and prints the rest in full.
    const { code, stdout, stderr } = await runProgram("docker-compose", ["--file", file, "config"]);
    expect(code, stderr).to.equal(0);
    service = (parse(stdout) as { services: { gateway: Service } }).services.gateway;
    world = await openDoctorWorld();
  });

  after(() => world?.remove());

  it("is refused by docker-compose where it says what is not known", async () => {
    const copy = await mkdtemp(join(tmpdir(), "compose-"));
    await writeFile(join(copy, "compose.yaml"), readFileSync(file, "utf8").replace("read_only:", "readonly:"));
    const { code } = await runProgram("docker-compose", ["--file", join(copy, "compose.yaml"), "config"]);
    await rm(copy, { recursive: true });
    expect(code).to.not.equal(0);
  });

  it("runs the image that the Containerfile's first line names, and kubernetes.yaml, in the package's version", () => {
    const name = `agent-governance-gateway:${version}`;
    expect(service.image).to.equal(name);
    expect(containerfile.split("\n")[0]).to.include(` -t ${name} `);
    expect(readFileSync(join(folder, "kubernetes.yaml"), "utf8")).to.include(`image: ${name}\n`);
  });

  it("runs it as the image's user, on a root that it cannot write, for this machine alone", () => {
    const user = parseContainerfile(containerfile).findLast(({ word }) => word === "USER")?.rest;
    expect(service).to.include({ user, read_only: true });
    for (const port of service.ports) expect(port).to.match(/^127\.0\.0\.1:(\d+):\1\/tcp$/);
  });

  it("mounts what the configuration of its comment names, which a gateway accepts", async () => {
    const places = new Map(service.volumes.map((volume) => volume.split(":").slice(-2) as [string, string]));
    expect(places.get("/etc/gateway")).to.equal("ro");
    const written = (
      await writtenPlaces(world.folder, readFileSync(file, "utf8"), (text) =>
        text.replace(
          /^( +)host: 127\.0\.0\.1$/m,
          "$1host: 0.0.0.0\n$1admin_host: 0.0.0.0\n$1allowed_hosts: [localhost]",
        ),
      )
    ).map((path) => path.split("/").slice(0, 4).join("/"));
    for (const place of written) expect(places.get(place), place).to.equal("rw");
    expect(new Set(written)).to.have.property("size", 3);
  });

  it("finds a gateway healthy that says so, and no other", async () => {
    let status = 200;
    const server = createServer((_, response) => {
      response.statusCode = status;
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const [, , ...args] = service.healthcheck.test;
    const port = String((server.address() as AddressInfo).port);
    const probe = async (): Promise<number | null> =>
      (
        await runProgram(
          process.execPath,
          args.map((arg) => arg.replace("8080", port)),
        )
      ).code;
    expect(await probe()).to.equal(0);
    status = 503;
    expect(await probe()).to.equal(1);
    await new Promise((resolve) => server.close(resolve));
    expect(await probe()).to.equal(1);
  });
});
