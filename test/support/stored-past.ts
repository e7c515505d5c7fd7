import type { JsonObject } from "../../core/action/json.ts";
import { Agent, type Answer } from "./agent.ts";
import { EvidenceReader } from "./evidence-reader.ts";
import type { RunningGateway } from "./gateway.ts";
import { heldId } from "./held-site.ts";
import {
  type Era,
  isSince,
  type KnownState,
  type Person,
  stoppedPerson,
  storedKey,
  storedPrincipal,
} from "./stored-state.ts";
import { until, type WebhookReceiver } from "./webhook-receiver.ts";

interface Caller {
  readonly person?: Person;
  readonly token?: string;
}

/** Lets happen to a gateway what can happen to one of its day. */
export class StoredPast {
  readonly #era: Era;
  readonly #gateway: RunningGateway;
  readonly #hook: WebhookReceiver;
  #token: string | null = null;

  constructor(era: Era, gateway: RunningGateway, hook: WebhookReceiver) {
    this.#era = era;
    this.#gateway = gateway;
    this.#hook = hook;
  }

  /** What it knows of it afterwards. */
  async make(): Promise<KnownState> {
    await this.#call({ word: "plain" }, "work");
    await this.#call({ block: true }, "work");
    if (isSince(this.#era, "reviewed")) {
      await this.#review();
      await this.#stopSessions();
      await this.#ask("adam", "POST", "evidence/keys/rotate");
    }
    if (isSince(this.#era, "metered")) await this.#askModel();
    if (isSince(this.#era, "watched")) {
      await this.#issueTickets();
      await this.#declare();
      await this.#ask("adam", "POST", "kills", { scope: "principal", subject: storedPrincipal("other") });
    }
    return this.#tell();
  }

  /** One approval of each state that lasts. */
  async #review(): Promise<void> {
    await this.#call({ review: "pending" }, "reviews");
    for (const state of ["approved", "denied", "consumed"]) {
      const id = heldId(await this.#call({ review: state }, "reviews"));
      await this.#ask("rita", "POST", `approvals/${id}/${state === "denied" ? "deny" : "approve"}`);
    }
    await this.#call({ review: "consumed" }, "reviews");
    const urgent = heldId(await this.#call({ review: "urgent" }, "urgent"));
    await this.#ask("adam", "POST", `approvals/${urgent}/approve`, { break_glass: "production is down" });
    await this.#call({ review: "urgent" }, "urgent");
    // Five were asked for, three approved and one denied; each has been tried by then.
    await until(() => new Set(this.#hook.ids).size === 9, "every notice");
  }

  async #stopSessions(): Promise<void> {
    const person = stoppedPerson(this.#era);
    for (const label of ["released", "stopped"]) {
      await this.#call({ word: label }, label, { person });
      const { id } = (await this.#sessions()).find((each) => each.label === label) ?? {};
      await this.#ask("rita", "POST", `sessions/${id}/kill`);
      await this.#call({ word: "after" }, label, { person });
      if (label === "released") await this.#ask("rita", "POST", `sessions/${id}/release`, { reason: "seen to" });
    }
  }

  async #askModel(): Promise<void> {
    for (const content of ["How is the weather?", "And tomorrow?"]) {
      const response = await fetch(`${this.#gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": storedKey("agent"), "content-type": "application/json" },
        body: JSON.stringify({ model: "mock", messages: [{ role: "user", content }] }),
      });
      if (response.status !== 200) throw new Error(`expected 200 of the model, got ${await response.text()}`);
      await response.arrayBuffer();
    }
  }

  /** One is used once of twice, one used up, and one revoked. */
  async #issueTickets(): Promise<void> {
    this.#token = (await this.#issue(2)).token;
    await this.#call({ ticket: 1 }, "tickets", { token: this.#token });
    await this.#call({ ticket: 2 }, "tickets", { token: (await this.#issue(1)).token });
    await this.#ask("rita", "DELETE", `tickets/${(await this.#issue(1)).ticket.id}`, { reason: "not needed" });
  }

  #issue(maxUses: number): Promise<{ token: string; ticket: { id: string } }> {
    const scope = { tools: ["echo"], targets: ["recorder"], capabilities: ["execute"] };
    const order = { principal: storedPrincipal("agent"), ...scope, max_uses: maxUses };
    return this.#ask("rita", "POST", "tickets", order);
  }

  #declare(): Promise<unknown> {
    return this.#ask("rita", "POST", "manifests", {
      task: "nightly",
      principal: "agent",
      expected_tools: ["recorder/deep"],
      expected_resources: ["*"],
      write_domains: ["*"],
      max_actions: 10,
      expires_at: new Date(Date.now() + 86_400_000).toISOString(),
      session: "planned",
    });
  }

  async #tell(): Promise<KnownState> {
    const since = (first: Era, path: string): Promise<JsonObject[]> =>
      isSince(this.#era, first) ? this.#list(path) : Promise.resolve([]);
    const sessions = await this.#sessions();
    const usage = isSince(this.#era, "metered") ? await this.#usage() : null;
    const lists = ["approvals?state=pending", "approvals?state=approved", "approvals/history"];
    const approvals = await Promise.all(lists.map((list) => since("reviewed", list)));
    const deadLetters = (await since("reviewed", "webhooks/dead-letters")).map(({ id }) => String(id));
    return {
      stopped_at: new Date().toISOString(),
      sessions: sessions.map(({ id, label, records }) => ({ id, records, ...(label === undefined ? {} : { label }) })),
      approvals: approvals.flat().map(({ id, state }) => ({ id, state })),
      break_glass: (await since("reviewed", "break-glass")).map(({ id }) => id),
      owed: [...new Set(this.#hook.ids)].filter((id) => !deadLetters.includes(id)),
      dead_letters: deadLetters,
      killed: (await since("reviewed", "sessions/killed")).map(({ session }) => session),
      usage,
      tickets: (await since("watched", "tickets")).map(({ id, state, uses }) => ({ id, state, uses })),
      token: this.#token,
      manifests: (await since("watched", "manifests")).map(({ task }) => ({ task })),
      taints: (await since("watched", "sessions")).map(({ session, taints }) => ({ session, taints })),
    } as unknown as KnownState;
  }

  async #usage(): Promise<JsonObject> {
    return (await this.#ask<{ totals: JsonObject }>("rita", "GET", "usage")).totals;
  }

  async #list(path: string): Promise<JsonObject[]> {
    return (await this.#ask<{ items: JsonObject[] }>("rita", "GET", path)).items;
  }

  #sessions(): ReturnType<EvidenceReader["sessions"]> {
    return new EvidenceReader(this.#gateway.adminUrl, storedKey("rita")).sessions();
  }

  async #call(args: JsonObject, label: string, { person = "agent", token }: Caller = {}): Promise<Answer> {
    const agent = new Agent(this.#gateway.url, storedKey(person), label, token);
    return agent.call("echo", args).finally(() => agent.hangUp());
  }

  async #ask<T>(person: Person, method: string, path: string, body?: JsonObject): Promise<T> {
    const response = await fetch(`${this.#gateway.adminUrl}/admin/v1/${path}`, {
      method,
      headers: {
        "x-api-key": storedKey(person),
        ...(method === "GET" ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`expected success of ${method} ${path}, got ${response.status}: ${text}`);
    return JSON.parse(text) as T;
  }
}
