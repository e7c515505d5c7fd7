import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repositoryRoot } from "../check/source-tree.ts";
import { until } from "../support/event-stream.ts";
import { freePort } from "../support/free-port.ts";
import { type Ran, runProgram } from "../support/program.ts";

export const proxyKinds = ["nginx", "caddy"] as const;
export type ProxyKind = (typeof proxyKinds)[number];

/** What of the shipped file is another thing in a test: each must stand there, once. */
export type Edits = readonly (readonly [shipped: string, instead: string])[];

/** A reverse proxy in front of a gateway, configured by the file we ship. */
export interface RunningProxy {
  readonly url: string;
  /** Everything that it printed so far. */
  said(): string;
  stop(): Promise<void>;
}

/** Who comes through a proxy: agents to the gateway port, or people to the console. */
type Site = "agents" | "console";

const files: Readonly<Record<ProxyKind, Readonly<Record<Site, string>>>> = {
  nginx: { agents: "nginx.conf", console: "nginx-console.conf" },
  caddy: { agents: "Caddyfile", console: "Caddyfile-console" },
};
const shippedPort: Readonly<Record<Site, number>> = { agents: 8080, console: 8082 };

/** The file as it ships. */
export function shippedProxy(kind: ProxyKind, site: Site = "agents"): string {
  return readFileSync(join(repositoryRoot, "core/cli/deploy", files[kind][site]), "utf8");
}

/** Throws where the shipped file does not say something once. */
function edited(text: string, edits: Edits): string {
  return edits.reduce((before, [shipped, instead]) => {
    if (before.split(shipped).length !== 2) throw new Error(`expected \`${shipped}\` once in the shipped file`);
    return before.replace(shipped, instead);
  }, text);
}

/** Starts a proxy without TLS on a free port, before one port of a gateway. Rejects with what it said where it does not listen. */
export async function startProxy(
  kind: ProxyKind,
  portUrl: string,
  edits: Edits = [],
  site: Site = "agents",
): Promise<RunningProxy> {
  const folder = await mkdtemp(join(tmpdir(), `${kind}-`));
  const port = await freePort();
  const target: Edits = [[`127.0.0.1:${shippedPort[site]}`, new URL(portUrl).host]];
  const text = edited(shippedProxy(kind, site), [...target, ...listening[kind](port, site), ...edits]);
  const child = kind === "nginx" ? await runNginx(folder, text) : await runCaddy(folder, text);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (said += String(chunk)));
  const failed = once(child, "error");
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    await rm(folder, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await Promise.race([answering(url, child), failed.then(([error]) => Promise.reject(error))]);
  } catch (cause) {
    if (child.pid !== undefined) await stop();
    throw new Error(`${kind} does not listen: ${said}`, { cause });
  }
  return { url, said: () => said, stop };
}

const listening: Readonly<Record<ProxyKind, (port: number, site: Site) => Edits>> = {
  nginx: (port, site) => [
    ["listen 443 ssl;", `listen 127.0.0.1:${port};`],
    [`ssl_certificate /etc/ssl/gateway/${site}.crt;`, ""],
    [`ssl_certificate_key /etc/ssl/gateway/${site}.key;`, ""],
  ],
  caddy: (port, site) => [[`${site}.example.com {`, `http://:${port} {\n\tbind 127.0.0.1\n\t`]],
};

/** What surrounds the shipped file of nginx: everything it writes goes to `folder`. */
function nginxConfig(folder: string, site: string): string {
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  return `
daemon off;
${process.getuid?.() === 0 ? "user root;" : ""}
worker_processes 1;
pid ${folder}/pid;
error_log stderr;
events {}
http {
access_log off;
${paths.join("\n")}
${site}
}
`;
}

async function runNginx(folder: string, site: string): Promise<ChildProcess> {
  const file = join(folder, "nginx.conf");
  await writeFile(file, nginxConfig(folder, site));
  return spawn("nginx", ["-p", folder, "-c", file], { stdio: ["ignore", "pipe", "pipe"] });
}

async function runCaddy(folder: string, site: string): Promise<ChildProcess> {
  const file = join(folder, "Caddyfile");
  await mkdir(join(folder, "home"));
  await writeFile(file, `{\n\tadmin off\n\tauto_https off\n\tgrace_period 1s\n}\n${site}`);
  const env = { ...process.env, HOME: join(folder, "home"), XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  return spawn("caddy", ["run", "--adapter", "caddyfile", "--config", file], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** What the proxy's own checker says of the shipped file, TLS and all; nothing but the certificate and `edits` is elsewhere. */
export async function checkShipped(kind: ProxyKind, site: Site = "agents", edits: Edits = []): Promise<Ran> {
  const folder = await mkdtemp(join(tmpdir(), `${kind}-`));
  try {
    const file = join(folder, files[kind][site]);
    if (kind === "caddy") {
      await writeFile(file, edited(shippedProxy(kind, site), edits));
      return await runProgram("caddy", ["validate", "--adapter", "caddyfile", "--config", file], "", { HOME: folder });
    }
    const [key, certificate] = [join(folder, `${site}.key`), join(folder, `${site}.crt`)];
    const subject = ["-subj", `/CN=${site}.example.com`, "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    await runProgram("openssl", ["req", "-x509", "-nodes", ...subject, "-keyout", key, "-out", certificate]);
    const own: Edits = [
      [`/etc/ssl/gateway/${site}.crt`, certificate],
      [`/etc/ssl/gateway/${site}.key`, key],
    ];
    await writeFile(file, nginxConfig(folder, edited(shippedProxy(kind, site), [...own, ...edits])));
    return await runProgram("nginx", ["-t", "-p", folder, "-c", file]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function answering(url: string, child: ChildProcess): Promise<void> {
  const answers = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`it exited with ${child.exitCode}`);
    const response = await fetch(`${url}/health`).catch(() => undefined);
    return response !== undefined && response.status < 500;
  };
  await until(answers, 10_000);
}
