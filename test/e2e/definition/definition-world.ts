import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EventRecord } from "../../../core/evidence/record/record.ts";
import { catalogEntry } from "../../support/catalog-entry.ts";
import { HeldSite, type Person } from "../../support/held-site.ts";
import { recordsIn } from "../../support/review-world.ts";
import { until } from "../../support/webhook-receiver.ts";
import { type Finished, runGateway } from "../../unit/cli/run.ts";

/** A withheld definition, as the admin port returns it. */
export interface Withheld {
  readonly id: string;
  readonly state: string;
  readonly upstream: string;
  readonly tool: string;
  readonly reasons: readonly { readonly finding: string; readonly text: string }[];
}

interface WorldOptions {
  /** What follows in the entry of each upstream, as YAML flow. */
  readonly more?: string;
  readonly approvals?: string;
}

export const inputSchema = { type: "object" };

/** A tool that lists and calls are made of. */
export function toolOf(name: string, over: object = {}): object {
  return { name, description: `Does ${name.replaceAll("_", " ")}.`, inputSchema, ...over };
}

/** A gateway before two MCP servers whose lists are files that a test rewrites, and which log the calls that reach them. */
export class DefinitionWorld {
  readonly site: HeldSite;
  readonly #folder: string;

  private constructor(folder: string, { more = "", approvals }: WorldOptions) {
    this.#folder = folder;
    const entry = (name: string): string => catalogEntry(name, join(folder, `${name}.json`), more, this.#log(name));
    this.site = new HeldSite({
      alone: true,
      upstreams: [entry("math"), entry("mail")],
      folder,
      ...(approvals === undefined ? {} : { approvals }),
    });
  }

  /** Starts with `math` and `mail` listing these tools, and both tenants shown them. */
  static async start(
    math: readonly object[],
    mail: readonly object[],
    options: WorldOptions = {},
  ): Promise<DefinitionWorld> {
    const world = new DefinitionWorld(await mkdtemp(join(tmpdir(), "definition-")), options);
    await world.#write("math", math);
    await world.#write("mail", mail);
    await world.site.start();
    for (const person of ["agent", "foreign"] as const) {
      await until(async () => (await world.shown(person)).length === math.length + mail.length + 2, "both lists");
    }
    return world;
  }

  async stop(): Promise<void> {
    await this.site.stop();
    await rm(this.#folder, { recursive: true });
  }

  async restart(): Promise<void> {
    await this.site.stop();
    await this.site.start();
    await until(async () => (await this.shown()).includes("publish_mail"), "a list");
  }

  /** Has a server list other tools, and say so. */
  async publish(upstream: "math" | "mail", tools: readonly object[]): Promise<void> {
    await this.swap(upstream, tools);
    await this.site.call(`publish_${upstream}`);
  }

  /** Has a server list other tools, and say nothing. */
  swap(upstream: "math" | "mail", tools: readonly object[]): Promise<void> {
    return this.#write(upstream, tools);
  }

  /** The names that somebody is shown. */
  async shown(person: Person = "agent"): Promise<readonly string[]> {
    const { result } = await this.site.agent(person).send("tools/list");
    return (result as unknown as { tools: readonly { name: string }[] }).tools.map(({ name }) => name);
  }

  /** The names of the tools whose calls reached a server, in order, but for those that only announce. */
  async ran(upstream: "math" | "mail"): Promise<readonly string[]> {
    const text = await readFile(this.#log(upstream), "utf8").catch(() => "");
    const names = text.split("\n").flatMap((line) => (line === "" ? [] : (JSON.parse(line) as { name: string }).name));
    return names.filter((name) => !name.startsWith("publish_"));
  }

  async ask(
    path: string,
    person: Person = "rita",
    body?: object,
  ): Promise<{ status: number; body: Record<string, unknown> }> {
    const response = await fetch(`${this.site.gateway.adminUrl}/admin/v1/${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { "x-api-key": this.site.key(person), "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  async withheld(state = "pending", person: Person = "rita"): Promise<readonly Withheld[]> {
    return (await this.ask(`definitions?state=${state}&limit=500`, person)).body.items as readonly Withheld[];
  }

  /** The withheld definition of a tool. Throws where there is none. */
  async withheldTool(upstream: string, tool: string): Promise<Withheld> {
    const all = await this.withheld();
    const found = all.find((each) => each.upstream === upstream && each.tool === tool);
    if (found === undefined) throw new Error(`expected \`${tool}\` to be withheld, got ${JSON.stringify(all)}`);
    return found;
  }

  run(...words: readonly string[]): Promise<Finished> {
    return runGateway(words, { GATEWAY_API_KEY: this.site.key("rita"), GATEWAY_ADMIN_URL: this.site.gateway.adminUrl });
  }

  /** The records of `acme`. The gateway must have stopped. */
  records(): Promise<readonly EventRecord[]> {
    return recordsIn(join(this.#folder, "data"), "acme");
  }

  #log(upstream: string): string {
    return join(this.#folder, `${upstream}.log`);
  }

  #write(upstream: string, tools: readonly object[]): Promise<void> {
    return writeFile(join(this.#folder, `${upstream}.json`), JSON.stringify([toolOf(`publish_${upstream}`), ...tools]));
  }
}
