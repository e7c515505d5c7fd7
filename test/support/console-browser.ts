import { readFile } from "node:fs/promises";
import { createServer, request as forward, type Server } from "node:http";
import { createRequire } from "node:module";
import { type AddressInfo, connect } from "node:net";
import puppeteer, { type Browser, type HTTPRequest, type Page } from "puppeteer-core";
import { type KeyHolder, keys, openWorld, type World } from "../e2e/wire/world.ts";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Debian's Chromium, without a window. */
export function launchBrowser(): Promise<Browser> {
  const args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];
  return puppeteer.launch({ executablePath: "/usr/bin/chromium", args });
}

/** A reverse proxy that has authenticated its user, and says so to the gateway with a key of its own. */
async function openProxy(target: string, holder: KeyHolder): Promise<Server> {
  const { port } = new URL(target);
  const server = await listen();
  forwardTo(server, target, (headers) => ({
    ...headers,
    host: `localhost:${port}`,
    "x-api-key": keys[holder],
    // What comes from its own pages comes from the gateway's; anything else stays as foreign as it was.
    ...(headers.origin === originOf(server) ? { origin: `http://localhost:${port}` } : {}),
  }));
  return server;
}

type Headers = Readonly<Record<string, string>>;

/** Forwards what comes to a server, with the headers that `change` returns. */
export function forwardTo(server: Server, target: string, change: (headers: Headers) => Headers): void {
  const { port } = new URL(target);
  server.on("request", (asked, answer) => {
    const { url, method, headers } = asked;
    const sent = forward({ port, path: url, method, headers: change(headers as Headers) }, (answered) => {
      answer.writeHead(answered.statusCode ?? 502, answered.headers);
      answered.pipe(answer);
    });
    sent.on("error", () => answer.destroy());
    asked.pipe(sent);
  });
  server.on("upgrade", ({ url, headers }, socket, head) => {
    const sent = Object.entries(change(headers as Headers));
    const up = connect(Number(port), "127.0.0.1", () => {
      up.write(`GET ${url} HTTP/1.1\r\n${sent.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
      up.write(head);
      up.pipe(socket).pipe(up);
    });
    for (const each of [up, socket]) each.on("error", () => each.destroy());
  });
}

/** Opens a server of this machine that answers nothing yet. */
export async function listen(): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

export function originOf(server: Server): string {
  return `http://localhost:${(server.address() as AddressInfo).port}`;
}

/** A gateway, and Chromium before its console: each person comes through a proxy with a key of their own. */
export class ConsoleSite {
  readonly world: World;
  readonly #browser: Browser;
  readonly #proxies = new Map<KeyHolder, Server>();
  readonly #tabs: ConsoleTab[] = [];

  private constructor(world: World, browser: Browser) {
    this.world = world;
    this.#browser = browser;
  }

  /** `more`: further top-level keys of `gateway.yaml`; `env`: of its process; `policy`: as of `openWorld`. */
  static async open(more = "", env: Readonly<Record<string, string>> = {}, policy?: string): Promise<ConsoleSite> {
    const world = await openWorld(`sessions: { review_flood: { reviews: 0 } }\n${more}`, "", policy, { env });
    try {
      return new ConsoleSite(world, await launchBrowser());
    } catch (error) {
      await world.stop();
      throw error;
    }
  }

  /** Opens a tab in a browser profile of its own, with the holder's console or, for null, with that of nobody. */
  async visit(holder: KeyHolder | null): Promise<ConsoleTab> {
    const origin = holder === null ? this.world.gateway.metricsUrl : originOf(await this.#proxyOf(holder));
    return this.visitAt(origin);
  }

  /** Opens a tab in a browser profile of its own, with the console at this origin. */
  async visitAt(origin: string): Promise<ConsoleTab> {
    const context = await this.#browser.createBrowserContext();
    return this.#keep(new ConsoleTab(await context.newPage(), origin));
  }

  /** Opens another tab in the profile of a tab. */
  async visitBeside({ page, origin }: ConsoleTab): Promise<ConsoleTab> {
    return this.#keep(new ConsoleTab(await page.browserContext().newPage(), origin));
  }

  #keep(tab: ConsoleTab): ConsoleTab {
    this.#tabs.push(tab);
    return tab;
  }

  async #proxyOf(holder: KeyHolder): Promise<Server> {
    const proxy = this.#proxies.get(holder) ?? (await openProxy(this.world.gateway.metricsUrl, holder));
    this.#proxies.set(holder, proxy);
    return proxy;
  }

  /** Closes every tab. Returns what their consoles said that nobody should say. */
  async closeTabs(): Promise<readonly string[]> {
    const tabs = this.#tabs.splice(0);
    await Promise.all([...new Set(tabs.map(({ page }) => page.browserContext()))].map((context) => context.close()));
    return tabs.flatMap(({ faults }) => faults);
  }

  async stop(): Promise<void> {
    await this.#browser.close();
    for (const proxy of this.#proxies.values()) {
      proxy.closeAllConnections();
      proxy.close();
    }
    await this.world.stop();
  }
}

/** The console in one tab. */
export class ConsoleTab {
  readonly page: Page;
  readonly origin: string;
  /** Errors, warnings and refused parts of the page, reports of its content security policy among them. */
  readonly faults: string[] = [];

  constructor(page: Page, origin: string) {
    this.page = page;
    this.origin = origin;
    // No assertion: beside other tests, a page of many records takes its time.
    page.setDefaultTimeout(60_000);
    page.on("console", (message) => {
      if (["error", "warn"].includes(message.type())) this.faults.push(message.text());
    });
    page.on("pageerror", (error) => this.faults.push(String(error)));
  }

  /** Loads the console, at `#/now` or what `hash` says. Resolves once it is live, or shows the ways in. */
  async open(hash = "#/now"): Promise<void> {
    await this.page.goto(`${this.origin}/${hash}`, { waitUntil: "load" });
    await this.until(`${textIn("#live")} === "live" || document.querySelector(".ways") !== null`);
  }

  async go(hash: string): Promise<void> {
    await this.page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  }

  /** Answers requests in place of the gateway, where `answer` returns something. */
  async intercept(answer: (request: HTTPRequest) => object | undefined): Promise<void> {
    await this.page.setRequestInterception(true);
    this.page.on("request", (request) => {
      const body = answer(request);
      if (body === undefined) void request.continue();
      else void request.respond({ status: 200, contentType: "application/json", body: JSON.stringify(body) });
    });
  }

  /** Passes each answer in JSON that the page gets on as `change` returns it. Changes of the page do not get through. */
  async rewrite(change: (path: string, body: object) => object): Promise<void> {
    await this.page.setRequestInterception(true);
    this.page.on("request", (request) => {
      if (request.headers().accept !== "application/json") return void request.continue();
      void this.#answer(request, change);
    });
  }

  async #answer(request: HTTPRequest, change: (path: string, body: object) => object): Promise<void> {
    const response = await fetch(request.url(), { method: request.method(), headers: request.headers() });
    const body = change(new URL(request.url()).pathname, (await response.json()) as object);
    const answer = { status: response.status, contentType: "application/json", body: JSON.stringify(body) };
    // A page that was left no longer waits for it.
    await request.respond(answer).catch(() => undefined);
  }

  text(selector: string): Promise<string> {
    return this.page.evaluate(textIn(selector)) as Promise<string>;
  }

  count(selector: string): Promise<number> {
    return this.page.evaluate(`document.querySelectorAll(${JSON.stringify(selector)}).length`) as Promise<number>;
  }

  until(expression: string): Promise<unknown> {
    return this.page.waitForFunction(expression);
  }

  /** Waits until an element's text includes a word. */
  untilText(selector: string, word: string): Promise<unknown> {
    return this.until(`(${textIn(selector)} ?? "").includes(${JSON.stringify(word)})`);
  }

  /** Clicks what is there or will be. */
  async click(selector: string): Promise<void> {
    await this.page.locator(selector).click();
  }

  /** The serious faults of accessibility that axe finds. The page takes no script but its own: the check goes in beside it. */
  async seriousFaults(): Promise<unknown> {
    const session = await this.page.createCDPSession();
    if ((await this.page.evaluate("typeof axe")) === "undefined")
      await session.send("Runtime.evaluate", { expression: await readFile(axe, "utf8") });
    const { result } = await session.send("Runtime.evaluate", {
      expression: `axe.run({ resultTypes: ["violations"] }).then(({ violations }) => JSON.stringify(violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => [id, nodes[0].html])))`,
      awaitPromise: true,
    });
    await session.detach();
    return JSON.parse(String(result.value));
  }
}

function textIn(selector: string): string {
  return `document.querySelector(${JSON.stringify(selector)})?.innerText`;
}
