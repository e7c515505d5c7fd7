import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { GatewayError } from "../action/error.ts";
import { postWithKey } from "./admin-client.ts";
import { readOperatorKey } from "./local-mode.ts";
import { print, say } from "./print.ts";

interface ConsoleOptions {
  readonly data?: string;
  readonly port?: number;
  readonly url?: string;
  readonly open?: true;
  readonly json?: true;
}

const usualFirstPort = 8_080;

/** `gateway console`: has the gateway make a one-time link to its console, and prints it. The key is sent to the gateway alone. */
export async function openConsolePage(options: ConsoleOptions): Promise<void> {
  const base = (options.url ?? `http://127.0.0.1:${(options.port ?? usualFirstPort) + 2}`).replace(/\/$/, "");
  const { path, expires_in_s: seconds } = await requestLink(base, await keyOf(options));
  const link = `${base}${path}`;
  const isOpened = options.open === true && (await openInBrowser(link));
  if (options.json) return print(JSON.stringify({ link, expires_in_s: seconds, opened: isOpened }));
  print(link);
  if (options.open && !isOpened) say("there is no browser to open it here");
  say(
    `${isOpened ? "opened in a browser" : "open it in a browser of this machine"}: it works once, within ${seconds} s`,
  );
}

interface IssuedLink {
  readonly path: string;
  readonly expires_in_s: number;
}

async function requestLink(base: string, key: string): Promise<IssuedLink> {
  const issued = await postWithKey<Partial<IssuedLink> | null>(`${base}/console/links`, key, "`--url` or `--port`");
  const { path, expires_in_s: seconds } = issued ?? {};
  if (typeof path === "string" && /^\/console\/link\?token=[\w-]{43}$/.test(path) && typeof seconds === "number") {
    return { path, expires_in_s: seconds };
  }
  throw new GatewayError(
    "UPSTREAM_INVALID",
    `expected a link from \`${base}/console/links\`; check \`--url\` or \`--port\``,
  );
}

/** The key of the environment, or the operator's of local mode. */
async function keyOf({ data = "data" }: ConsoleOptions): Promise<string> {
  const key = process.env.GATEWAY_API_KEY ?? "";
  if (key !== "") return key;
  const own = await readOperatorKey(resolve(data));
  if (own !== null) return own;
  const next = "start `gateway serve` there first, name its folder by `--data`, or set GATEWAY_API_KEY";
  throw new GatewayError("KEY_MISSING", `there is no operator's key in \`${resolve(data)}\`: ${next}`);
}

/** A program and its arguments. */
type Opener = readonly [program: string, ...args: string[]];

const usualOpener: Opener = ["xdg-open"];
const openers: Readonly<Partial<Record<NodeJS.Platform, Opener>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Opens a URL in the browser of whoever is at this machine. Resolves with false where there is none. */
async function openInBrowser(url: string): Promise<boolean> {
  const [command, ...args] = openers[process.platform] ?? usualOpener;
  const { DISPLAY: x11 = "", WAYLAND_DISPLAY: wayland = "" } = process.env;
  // Without a screen it would start a browser in this terminal.
  if (command === "xdg-open" && x11 + wayland === "") return false;
  const child = spawn(command, [...args, url], { stdio: "ignore", detached: true });
  return once(child, "spawn").then(
    () => {
      child.unref();
      return true;
    },
    () => false,
  );
}
